// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Element types, dimensions and shapes of values.
//
// The numbers of DataType are ONNX's own (TensorProto.DataType); a number that
// is not listed here is carried as it is. Any part of a type may be unknown,
// and no match may need a fact that is not needed for correctness.
//
//   ir::TensorType t{ir::DataType::kFloat16, ir::Shape{{2}, {"seq"}, {4096}}};
//   ir::ToString(t);  // "float16[2,seq,4096]"
#ifndef ADDNORM_PASSES_IR_TYPE_H_
#define ADDNORM_PASSES_IR_TYPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace addnorm::ir {

enum class DataType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBFloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
  kFloat6E2M3 = 27,
  kFloat6E3M2 = 28,
};

// The name in ONNX text ("float", "bfloat16"), "type 99" for an unknown number.
std::string DataTypeName(DataType type);

// Bits of one element; nullopt for strings, undefined and unknown numbers.
std::optional<int> BitWidth(DataType type);

// Types that a residual stream can have: float16, bfloat16, float and double.
bool IsFloat(DataType type);

// One dimension: a number, a symbol, or (neither) unknown.
struct Dimension {
  std::optional<int64_t> value;
  std::string symbol;

  Dimension() = default;
  Dimension(int64_t v) : value(v) {}  // NOLINT: reads as a literal
  Dimension(std::string s) : symbol(std::move(s)) {}  // NOLINT
  Dimension(const char* s) : symbol(s) {}             // NOLINT
  friend bool operator==(const Dimension&, const Dimension&) = default;
};

using Shape = std::vector<Dimension>;

// What is known of a value. An absent shape means that even the rank is
// unknown.
struct TensorType {
  DataType element = DataType::kUndefined;
  std::optional<Shape> shape;
  // What is no tensor: "sequence(float[n,4])"; then the two above are not
  // known.
  std::string other = {};

  bool known() const { return element != DataType::kUndefined; }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// True if no run can give both shapes the same dimensions: the ranks differ, or
// two known numbers in one place do. Symbols are not equal until proven, and
// not different either.
bool ProvablyDiffer(const Shape& a, const Shape& b);

std::string ToString(const Shape& shape);  // "[2,seq,?]"
std::string ToString(
    const TensorType& type);  // "float[2,seq,?]", "float[...]", "?"

}  // namespace addnorm::ir

#endif  // ADDNORM_PASSES_IR_TYPE_H_
