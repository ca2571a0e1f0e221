// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/ir/type.h"

#include <algorithm>
#include <array>

#include "fmt/format.h"

namespace addnorm::ir {
namespace {

struct TypeInfo {
  DataType type;
  std::string_view name;
  int bits;  // 0: no fixed width
};

constexpr TypeInfo kTypes[] = {
    {DataType::kUndefined, "undefined", 0},
    {DataType::kFloat, "float", 32},
    {DataType::kUint8, "uint8", 8},
    {DataType::kInt8, "int8", 8},
    {DataType::kUint16, "uint16", 16},
    {DataType::kInt16, "int16", 16},
    {DataType::kInt32, "int32", 32},
    {DataType::kInt64, "int64", 64},
    {DataType::kString, "string", 0},
    {DataType::kBool, "bool", 8},
    {DataType::kFloat16, "float16", 16},
    {DataType::kDouble, "double", 64},
    {DataType::kUint32, "uint32", 32},
    {DataType::kUint64, "uint64", 64},
    {DataType::kComplex64, "complex64", 64},
    {DataType::kComplex128, "complex128", 128},
    {DataType::kBFloat16, "bfloat16", 16},
    {DataType::kFloat8E4M3FN, "float8e4m3fn", 8},
    {DataType::kFloat8E4M3FNUZ, "float8e4m3fnuz", 8},
    {DataType::kFloat8E5M2, "float8e5m2", 8},
    {DataType::kFloat8E5M2FNUZ, "float8e5m2fnuz", 8},
    {DataType::kUint4, "uint4", 4},
    {DataType::kInt4, "int4", 4},
    {DataType::kFloat4E2M1, "float4e2m1", 4},
    {DataType::kFloat8E8M0, "float8e8m0", 8},
    {DataType::kUint2, "uint2", 2},
    {DataType::kInt2, "int2", 2},
    {DataType::kFloat6E2M3, "float6e2m3", 6},
    {DataType::kFloat6E3M2, "float6e3m2", 6},
};

const TypeInfo* Find(DataType type) {
  const auto* found =
      std::find_if(std::begin(kTypes), std::end(kTypes),
                   [type](const TypeInfo& t) { return t.type == type; });
  return found == std::end(kTypes) ? nullptr : found;
}

std::string ToString(const Dimension& dimension) {
  if (dimension.value) return fmt::format("{}", *dimension.value);
  return dimension.symbol.empty() ? "?" : dimension.symbol;
}

}  // namespace

std::string DataTypeName(DataType type) {
  const TypeInfo* info = Find(type);
  return info == nullptr ? fmt::format("type {}", static_cast<int>(type))
                         : std::string(info->name);
}

std::optional<int> BitWidth(DataType type) {
  const TypeInfo* info = Find(type);
  if (info == nullptr || info->bits == 0) return std::nullopt;
  return info->bits;
}

bool IsFloat(DataType type) {
  return type == DataType::kFloat || type == DataType::kFloat16 ||
         type == DataType::kBFloat16 || type == DataType::kDouble;
}

bool ProvablyDiffer(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return true;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].value && b[i].value && *a[i].value != *b[i].value) return true;
  }
  return false;
}

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (const Dimension& dimension : shape) {
    if (text.size() > 1) text += ",";
    text += ToString(dimension);
  }
  return text + "]";
}

std::string ToString(const TensorType& type) {
  if (!type.known() && !type.other.empty()) return type.other;
  const std::string element = type.known() ? DataTypeName(type.element) : "?";
  if (!type.shape) return type.known() ? element + "[...]" : element;
  return element + ToString(*type.shape);
}

}  // namespace addnorm::ir
