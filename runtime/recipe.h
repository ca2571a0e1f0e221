// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What a residual Add and the RMSNorm that reads its sum compute: every
// operation in order, with its type, one rounding each.
//
// It is the common language of the spellings: a body in any of them is
// translated to a recipe (fused_body.h) and a kernel follows the recipe
// (kernels/add_rms_norm.h). Two bodies of one recipe give the same bits. Shapes
// are not part of it; neither is the order of the operands of Add and Mul,
// which changes no bits (element_types.h, Canonical).
//
//   x   = round(a + b)                        in `type`
//   sum of round(x' * x') over the row        x' = x cast to `square_type`; a
//                                             first step that divides by the
//                                             length takes the sum unrounded
//   factor: `scalar_steps` on that sum        one number a row
//   y   = `row_steps` on x
#ifndef ADDNORM_RUNTIME_RECIPE_H_
#define ADDNORM_RUNTIME_RECIPE_H_

#include <vector>

#include "passes/ir/type.h"

namespace addnorm::runtime {

// A step on the row's number v, whose type is that of the step before.
struct ScalarStep {
  enum class Op {
    kDivideByLength,  // v / n: the mean
    kAdd,             // v + constant
    kAddEpsilon,      // v + epsilon, which the call gives
    kMultiply,        // v * constant
    kDivide,          // v / constant
    kDivideInto,      // constant / v
    kSquareRoot,      // sqrt(v)
    kReciprocal,      // 1 / v
    kPower,           // v ** constant
    kCast,            // v as `type`
  };
  Op op = Op::kCast;
  double constant = 0;                           // exact in the type of v
  ir::DataType type = ir::DataType::kUndefined;  // of kCast
  friend bool operator==(const ScalarStep&, const ScalarStep&) = default;
};

// A step on the elements e of the row, whose type is that of the step before.
// `factor` and `scale` are in that type by then.
struct RowStep {
  enum class Op {
    kTimesFactor,        // e * factor
    kOverFactor,         // e / factor
    kTimesScale,         // e * scale
    kTimesScaledFactor,  // e * round(factor * scale)
    kCast,               // e as `type`
  };
  Op op = Op::kCast;
  ir::DataType type = ir::DataType::kUndefined;  // of kCast
  friend bool operator==(const RowStep&, const RowStep&) = default;
};

struct RmsNormRecipe {
  ir::DataType type = ir::DataType::kUndefined;  // of a, b, x
  ir::DataType square_type = ir::DataType::kUndefined;
  std::vector<ScalarStep> scalar_steps;
  std::vector<RowStep> row_steps;
  // The scale's own type, then the types it is cast to before it is used; empty
  // for a norm without scale.
  std::vector<ir::DataType> scale_types;
  // What few spellings do: further types on the way from x to square_type, and
  // types that the squares are cast to before they are summed.
  std::vector<ir::DataType> casts_before_square = {};
  std::vector<ir::DataType> casts_of_squares = {};
  // False where one operator squares and sums: then squares of half types are
  // not rounded in between.
  bool squares_are_rounded = true;
  // The type in which squares are summed, and of the first scalar step.
  ir::DataType sum_type() const {
    return casts_of_squares.empty() ? square_type : casts_of_squares.back();
  }
  friend bool operator==(const RmsNormRecipe&, const RmsNormRecipe&) = default;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_RECIPE_H_
