// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The elements of a small constant as numbers, with their type. Not a tensor:
// shapes are gone. Every value of the types that it takes is exact in a double.
//
//   ConstantValue::Of(tensor)->scalar();  // 2.0
#ifndef ADDNORM_RUNTIME_CONSTANT_VALUE_H_
#define ADDNORM_RUNTIME_CONSTANT_VALUE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/ir/tensor.h"
#include "passes/ir/type.h"
#include "runtime/attributes.h"
#include "runtime/tensor.h"

namespace addnorm::runtime {

class ConstantValue {
 public:
  ConstantValue() = default;

  // nullopt for elements that are not inline, too many, not numbers, or not
  // exact.
  static std::optional<ConstantValue> Of(const ir::Tensor& tensor);
  static std::optional<ConstantValue> Of(const Tensor& tensor);
  // Of a Constant node.
  static std::optional<ConstantValue> Of(const Attributes& attributes);

  ir::DataType type() const { return type_; }
  // nullopt unless it has one element.
  std::optional<double> scalar() const;
  std::vector<int64_t> ints() const;
  // Rounded to the floating-point type; nullopt from double to a half type,
  // where a Cast may round twice.
  std::optional<ConstantValue> CastTo(ir::DataType type) const;

  friend bool operator==(const ConstantValue&, const ConstantValue&) = default;

 private:
  ir::DataType type_ = ir::DataType::kUndefined;
  std::vector<double> values_;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_CONSTANT_VALUE_H_
