// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/ir/status_macros.h"

namespace addnorm::runtime {
namespace {

// A cache line: no two buffers share one, and every vector load is aligned.
constexpr size_t kAlignment = 64;

// nullptr if there is no memory: this may be a wrong shape's fault, so it is
// asked for where the program does not end for want of it, as operator new
// does.
void* Allocate(size_t bytes) {
  if (bytes > SIZE_MAX - kAlignment) return nullptr;
  return std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment);
}

// Elements that share one byte in ONNX's layout; 1 for whole bytes.
int ElementsPerByte(ir::DataType type) {
  const std::optional<int> bits = ir::BitWidth(type);
  return bits && *bits < 8 && *bits != 6 ? 8 / *bits : 1;
}

bool IsSigned(ir::DataType type) {
  return type == ir::DataType::kInt4 || type == ir::DataType::kInt2;
}

// Several elements a byte, the first in the low bits.
void Unpack(std::string_view packed, ir::DataType type,
            std::span<uint8_t> elements) {
  const int per_byte = ElementsPerByte(type);
  const int bits = 8 / per_byte;
  const int mask = (1 << bits) - 1;
  const int sign = IsSigned(type) ? 1 << (bits - 1) : 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const int byte = static_cast<uint8_t>(packed[i / per_byte]);
    const int value = byte >> (static_cast<int>(i % per_byte) * bits) & mask;
    elements[i] = static_cast<uint8_t>((value ^ sign) - sign);
  }
}

std::string Pack(std::span<const uint8_t> elements, ir::DataType type) {
  const int per_byte = ElementsPerByte(type);
  const int bits = 8 / per_byte;
  const int mask = (1 << bits) - 1;
  std::string packed((elements.size() + per_byte - 1) / per_byte, '\0');
  for (size_t i = 0; i < elements.size(); ++i) {
    const int shift = static_cast<int>(i % per_byte) * bits;
    packed[i / per_byte] =
        static_cast<char>(packed[i / per_byte] | (elements[i] & mask) << shift);
  }
  return packed;
}

}  // namespace

void MemoryMeter::Add(size_t bytes) {
  const size_t now = current_ += bytes;
  size_t peak = peak_;
  while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
  }
}

size_t ElementSize(ir::DataType type) {
  const std::optional<int> bits = ir::BitWidth(type);
  return bits ? static_cast<size_t>(*bits + 7) / 8 : 0;
}

std::optional<int64_t> ElementCount(const Dims& dims) {
  int64_t count = 1;
  bool overflow = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    // A later zero still makes the product zero.
    if (dim == 0) return 0;
    overflow |= __builtin_mul_overflow(count, dim, &count);
  }
  if (overflow) return std::nullopt;
  return count;
}

absl::StatusOr<Tensor> Tensor::Create(ir::DataType type, Dims dims,
                                      std::shared_ptr<MemoryMeter> meter) {
  const size_t size = ElementSize(type);
  if (size == 0) {
    return absl::UnimplementedError(fmt::format(
        "tensors of type {} are not supported", ir::DataTypeName(type)));
  }
  const std::optional<int64_t> count = ElementCount(dims);
  size_t bytes = 0;
  if (!count ||
      __builtin_mul_overflow(static_cast<size_t>(*count), size, &bytes)) {
    return absl::InvalidArgumentError(
        fmt::format("no tensor has the shape {}", ToString(dims)));
  }
  void* memory = Allocate(bytes);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(fmt::format(
        "no memory for {}{}", ir::DataTypeName(type), ToString(dims)));
  }
  if (meter != nullptr) meter->Add(bytes);
  Tensor tensor;
  tensor.type_ = type;
  tensor.dims_ = std::move(dims);
  tensor.count_ = *count;
  tensor.bytes_ = static_cast<std::byte*>(memory);
  tensor.buffer_ =
      std::shared_ptr<void>(memory, [meter = std::move(meter), bytes](void* p) {
        std::free(p);
        if (meter != nullptr) meter->Remove(bytes);
      });
  return tensor;
}

absl::StatusOr<Tensor> Tensor::FromBytes(ir::DataType type, Dims dims,
                                         std::string bytes,
                                         std::shared_ptr<MemoryMeter> meter) {
  const int per_byte = ElementsPerByte(type);
  const std::optional<int64_t> count = ElementCount(dims);
  const size_t expected = count ? (static_cast<size_t>(*count) *
                                       (per_byte > 1 ? 1 : ElementSize(type)) +
                                   per_byte - 1) /
                                      per_byte
                                : 0;
  if (!count || bytes.size() != expected) {
    return absl::InvalidArgumentError(fmt::format(
        "{}{} has {} bytes of elements, expected {}", ir::DataTypeName(type),
        ToString(dims), bytes.size(), expected));
  }
  if (per_byte > 1 || ElementSize(type) == 0) {
    ASSIGN_OR_RETURN(Tensor tensor,
                     Create(type, std::move(dims), std::move(meter)));
    Unpack(bytes, type, tensor.mutable_elements<uint8_t>());
    return tensor;
  }
  // The string itself becomes the buffer: a weight is never twice in memory.
  auto owner = std::make_shared<std::string>(std::move(bytes));
  if (meter != nullptr) meter->Add(owner->size());
  Tensor tensor;
  tensor.type_ = type;
  tensor.dims_ = std::move(dims);
  tensor.count_ = *count;
  tensor.bytes_ = reinterpret_cast<std::byte*>(owner->data());
  tensor.buffer_ = std::shared_ptr<void>(
      owner.get(), [owner, meter = std::move(meter)](void*) mutable {
        if (meter != nullptr) meter->Remove(owner->size());
        owner.reset();
      });
  return tensor;
}

Tensor Tensor::Small(ir::DataType type, Dims dims, const void* elements) {
  Tensor tensor = Create(type, std::move(dims), nullptr).value();
  if (tensor.count_ > 0)
    std::memcpy(tensor.bytes_, elements, tensor.byte_size());
  return tensor;
}

Tensor Tensor::WithDims(Dims dims) const {
  Tensor tensor = *this;
  tensor.dims_ = std::move(dims);
  return tensor;
}

Tensor Tensor::WithType(ir::DataType type, Dims dims) const {
  Tensor tensor = WithDims(std::move(dims));
  tensor.type_ = type;
  tensor.count_ = ElementCount(tensor.dims_).value_or(0);
  return tensor;
}

std::string Tensor::ToBytes() const {
  if (ElementsPerByte(type_) > 1) return Pack(elements<uint8_t>(), type_);
  return std::string(data<char>(), byte_size());
}

std::string ToString(const Dims& dims) {
  return fmt::format("[{}]", fmt::join(dims, ","));
}

std::string Describe(const Tensor& tensor) {
  return ir::DataTypeName(tensor.type()) + ToString(tensor.dims());
}

}  // namespace addnorm::runtime
