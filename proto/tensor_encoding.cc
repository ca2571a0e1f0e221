// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/tensor_encoding.h"

#include <bit>
#include <cstring>
#include <limits>

#include "fmt/ranges.h"
#include "passes/ir/printable.h"
#include "proto/errors.h"

namespace addnorm::proto {
namespace {

using ir::DataType;
using onnx::TensorProto;

static_assert(std::endian::native == std::endian::little,
              "elements are copied as they are");

template <typename Wanted, typename Items>
std::string Narrow(const Items& items) {
  std::string bytes(static_cast<size_t>(items.size()) * sizeof(Wanted), '\0');
  char* out = bytes.data();
  for (const auto item : items) {
    const auto wanted = static_cast<Wanted>(item);
    std::memcpy(out, &wanted, sizeof(wanted));
    out += sizeof(wanted);
  }
  return bytes;
}

template <typename Items>
std::string AsTheyAre(const Items& items) {
  return std::string(reinterpret_cast<const char*>(items.data()),
                     static_cast<size_t>(items.size()) * sizeof(*items.data()));
}

}  // namespace

int TypedField(DataType type) {
  switch (type) {
    case DataType::kFloat:
    case DataType::kComplex64:
      return TensorProto::kFloatDataFieldNumber;
    case DataType::kDouble:
    case DataType::kComplex128:
      return TensorProto::kDoubleDataFieldNumber;
    case DataType::kInt64:
      return TensorProto::kInt64DataFieldNumber;
    case DataType::kUint32:
    case DataType::kUint64:
      return TensorProto::kUint64DataFieldNumber;
    case DataType::kString:
      return TensorProto::kStringDataFieldNumber;
    default:
      return ir::BitWidth(type) ? TensorProto::kInt32DataFieldNumber : 0;
  }
}

std::optional<uint64_t> ByteSize(DataType type, int64_t count) {
  const std::optional<int> bits = ir::BitWidth(type);
  if (!bits || count > std::numeric_limits<int64_t>::max() / *bits)
    return std::nullopt;
  return (static_cast<uint64_t>(count) * static_cast<uint64_t>(*bits) + 7) / 8;
}

uint64_t ItemCount(DataType type, int64_t count) {
  const auto n = static_cast<uint64_t>(count);
  if (type == DataType::kComplex64 || type == DataType::kComplex128)
    return 2 * n;
  const int bits = ir::BitWidth(type).value_or(8);
  return bits == 2 || bits == 4 ? (n * static_cast<uint64_t>(bits) + 7) / 8 : n;
}

absl::StatusOr<int64_t> ElementCount(const ir::Tensor& tensor) {
  const std::optional<int64_t> count = tensor.element_count();
  const bool has_width = ir::BitWidth(tensor.type).has_value();
  if (!count || (has_width && !ByteSize(tensor.type, *count))) {
    return InvalidModel(
        "has dims [{}], which are negative or more than memory can hold",
        fmt::join(tensor.dims, ","));
  }
  return *count;
}

std::optional<std::string> DecodeTyped(DataType type,
                                       const TensorProto& proto) {
  switch (TypedField(type)) {
    case TensorProto::kFloatDataFieldNumber:
      return AsTheyAre(proto.float_data());
    case TensorProto::kDoubleDataFieldNumber:
      return AsTheyAre(proto.double_data());
    case TensorProto::kInt64DataFieldNumber:
      return AsTheyAre(proto.int64_data());
    case TensorProto::kUint64DataFieldNumber:
      return type == DataType::kUint64 ? AsTheyAre(proto.uint64_data())
                                       : Narrow<uint32_t>(proto.uint64_data());
    case TensorProto::kInt32DataFieldNumber:
      switch (*ir::BitWidth(type)) {
        case 32:
          return AsTheyAre(proto.int32_data());
        case 16:
          return Narrow<uint16_t>(proto.int32_data());
        case 6:
          return std::nullopt;
        default:
          return Narrow<uint8_t>(proto.int32_data());
      }
    default:
      return std::nullopt;
  }
}

absl::Status WithTensorName(const absl::Status& status,
                            const std::string& name) {
  return WithContext(
      status, name.empty() ? "a tensor without name"
                           : fmt::format("tensor '{}'", ir::Printable(name)));
}

}  // namespace addnorm::proto
