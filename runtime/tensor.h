// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A tensor of the runtime: type, dims, and a shared buffer of elements, dense
// and row-major.
//
// Copying a Tensor shares its buffer; who writes must own it alone or have made
// it. It is not ir::Tensor, which only says where a constant's elements are.
// Elements of less than a byte take a byte each (element_types.h).
//
//   ASSIGN_OR_RETURN(Tensor y, Tensor::Create(x.type(), x.dims(), meter));
//   std::copy_n(x.data<float>(), x.count(), y.mutable_data<float>());
#ifndef ADDNORM_RUNTIME_TENSOR_H_
#define ADDNORM_RUNTIME_TENSOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/ir/type.h"
#include "runtime/element_types.h"

namespace addnorm::runtime {

using Dims = std::vector<int64_t>;

// Bytes that buffers hold now and held at most; shared by the tensors of a run.
class MemoryMeter {
 public:
  void Add(size_t bytes);
  void Remove(size_t bytes) { current_ -= bytes; }
  size_t current() const { return current_; }
  size_t peak() const { return peak_; }
  void ResetPeak() { peak_ = current_.load(); }

 private:
  std::atomic<size_t> current_ = 0;
  std::atomic<size_t> peak_ = 0;
};

// Bytes of one element in memory; 0 for types that tensors cannot have here.
size_t ElementSize(ir::DataType type);

class Tensor {
 public:
  Tensor() = default;  // absent: an optional operand that is not given

  // Elements are uninitialised, aligned to a cache line. kResourceExhausted
  // where memory does not suffice (memory_bound.h), kUnimplemented for types
  // without elements.
  static absl::StatusOr<Tensor> Create(ir::DataType type, Dims dims,
                                       std::shared_ptr<MemoryMeter> meter);
  // Takes over bytes in the layout of ONNX's raw_data; sub-byte types are
  // unpacked. kInvalidArgument if the size is not that of type and dims.
  static absl::StatusOr<Tensor> FromBytes(ir::DataType type, Dims dims,
                                          std::string bytes,
                                          std::shared_ptr<MemoryMeter> meter);
  // A tensor of rank 0 or 1 that holds these elements; for small ones.
  template <typename T>
  static Tensor Scalar(T value) {
    return Small(kTypeOf<T>, {}, &value);
  }
  template <typename T>
  static Tensor Vector(const std::vector<T>& values) {
    return Small(kTypeOf<T>, {static_cast<int64_t>(values.size())},
                 values.data());
  }

  bool is_absent() const { return buffer_ == nullptr; }
  ir::DataType type() const { return type_; }
  const Dims& dims() const { return dims_; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  int64_t count() const { return count_; }
  size_t byte_size() const {
    return static_cast<size_t>(count_) * ElementSize(type_);
  }

  // T must be the C++ type of type(), or a byte.
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes_);
  }
  template <typename T>
  T* mutable_data() {
    return reinterpret_cast<T*>(bytes_);
  }
  template <typename T>
  std::span<const T> elements() const {
    return {data<T>(), static_cast<size_t>(count_)};
  }
  template <typename T>
  std::span<T> mutable_elements() {
    return {mutable_data<T>(), static_cast<size_t>(count_)};
  }

  // Nobody else shares its buffer, so it may be overwritten.
  bool owns_buffer() const { return buffer_.use_count() == 1; }
  // The same elements under other dims of the same product, or as another type
  // of the same size.
  Tensor WithDims(Dims dims) const;
  Tensor WithType(ir::DataType type, Dims dims) const;
  // The elements as ONNX's raw_data has them: sub-byte types packed.
  std::string ToBytes() const;

 private:
  static Tensor Small(ir::DataType type, Dims dims, const void* elements);
  static Tensor Own(ir::DataType type, Dims dims, int64_t count,
                    std::shared_ptr<void> buffer, void* bytes);

  ir::DataType type_ = ir::DataType::kUndefined;
  Dims dims_;
  int64_t count_ = 0;
  std::shared_ptr<void> buffer_;
  std::byte* bytes_ = nullptr;
};

// Product of dims; nullopt if one is negative or the product overflows.
std::optional<int64_t> ElementCount(const Dims& dims);

// "float[2,3]"
std::string Describe(const Tensor& tensor);
std::string ToString(const Dims& dims);  // "[2,3]"

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_TENSOR_H_
