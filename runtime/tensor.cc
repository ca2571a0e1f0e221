// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/ir/status_macros.h"
#include "runtime/memory_bound.h"

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

// What a tensor takes beside its elements, about: the buffer's rounding and its
// count of owners, dims, the tensor itself. So many small ones count too.
constexpr size_t kTensorBytes = 256;

// Frees the memory, and says so to those who count it.
std::shared_ptr<void> Counted(void* memory, size_t bytes,
                              std::shared_ptr<MemoryMeter> meter) {
  if (meter != nullptr) meter->Add(bytes);
  return std::shared_ptr<void>(
      memory, [meter = std::move(meter), bytes](void* p) {
        std::free(p);
        if (meter != nullptr) meter->Remove(bytes);
        MemoryBound::OfProcess().Give(bytes + kTensorBytes);
      });
}

// Without overflow: what a size_t has no number for is more than there is.
size_t WithTensorBytes(size_t bytes) {
  return bytes + std::min(kTensorBytes, SIZE_MAX - bytes);
}

absl::Status NoMemory(ir::DataType type, const Dims& dims,
                      std::string_view why) {
  return absl::ResourceExhaustedError(fmt::format(
      "no memory for {}{}: {}", ir::DataTypeName(type), ToString(dims), why));
}

// The bytes of the elements.
absl::StatusOr<size_t> BytesOf(ir::DataType type, const Dims& dims) {
  const size_t size = ElementSize(type);
  if (size == 0) {
    return absl::UnimplementedError(fmt::format(
        "tensors of type {} are not supported", ir::DataTypeName(type)));
  }
  if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; })) {
    return absl::InvalidArgumentError(
        fmt::format("no tensor has the shape {}", ToString(dims)));
  }
  const std::optional<int64_t> count = ElementCount(dims);
  size_t bytes = 0;
  if (!count ||
      __builtin_mul_overflow(static_cast<size_t>(*count), size, &bytes))
    return NoMemory(type, dims, "more bytes are needed than can be counted");
  return bytes;
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

Tensor Tensor::Own(ir::DataType type, Dims dims, int64_t count,
                   std::shared_ptr<void> buffer, void* bytes) {
  Tensor tensor;
  tensor.type_ = type;
  tensor.dims_ = std::move(dims);
  tensor.count_ = count;
  tensor.bytes_ = static_cast<std::byte*>(bytes);
  tensor.buffer_ = std::move(buffer);
  return tensor;
}

absl::StatusOr<Tensor> Tensor::Create(ir::DataType type, Dims dims,
                                      std::shared_ptr<MemoryMeter> meter) {
  ASSIGN_OR_RETURN(const size_t bytes, BytesOf(type, dims));
  const absl::Status room =
      MemoryBound::OfProcess().Take(WithTensorBytes(bytes));
  if (!room.ok()) return NoMemory(type, dims, std::string(room.message()));
  void* memory = Allocate(bytes);
  if (memory == nullptr) {
    MemoryBound::OfProcess().Give(bytes + kTensorBytes);
    return NoMemory(type, dims,
                    fmt::format("the system refuses {} bytes", bytes));
  }
  const auto count = static_cast<int64_t>(bytes / ElementSize(type));
  return Own(type, std::move(dims), count,
             Counted(memory, bytes, std::move(meter)), memory);
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
  void* elements = owner->data();
  const size_t held = owner->size();
  MemoryBound::OfProcess().TakeUnasked(held + kTensorBytes);
  if (meter != nullptr) meter->Add(held);
  std::shared_ptr<void> buffer(
      elements, [owner, held, meter = std::move(meter)](void*) mutable {
        if (meter != nullptr) meter->Remove(held);
        MemoryBound::OfProcess().Give(held + kTensorBytes);
        owner.reset();
      });
  return Own(type, std::move(dims), *count, std::move(buffer), elements);
}

Tensor Tensor::Small(ir::DataType type, Dims dims, const void* elements) {
  const int64_t count = ElementCount(dims).value();
  const size_t bytes = static_cast<size_t>(count) * ElementSize(type);
  void* memory = Allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();  // as for any small object
  MemoryBound::OfProcess().TakeUnasked(bytes + kTensorBytes);
  if (bytes > 0) std::memcpy(memory, elements, bytes);
  return Own(type, std::move(dims), count, Counted(memory, bytes, nullptr),
             memory);
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
