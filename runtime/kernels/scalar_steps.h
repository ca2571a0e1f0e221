// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of a recipe that is one number a row: from the sum of squares to
// the factor. Each step rounds as the op of its own would.
//
// Numbers are doubles that hold a value of the step's type exactly.
//
//   const double factor =
//       RowFactor(recipe, sum_of_squares, /*length=*/4096, epsilon);
#ifndef ADDNORM_RUNTIME_KERNELS_SCALAR_STEPS_H_
#define ADDNORM_RUNTIME_KERNELS_SCALAR_STEPS_H_

#include <cstdint>

#include "passes/ir/type.h"
#include "runtime/recipe.h"

namespace addnorm::runtime {

// sum: as the row's loop gives it, not yet rounded to a half type: a mean
// divides before it rounds. Where the first step is kDivideByLength, the two
// are ReduceMean; else the sum is ReduceSum, rounded here.
double RowFactor(const RmsNormRecipe& recipe, double sum, int64_t length,
                 double epsilon);

// The type of the factor.
ir::DataType FactorType(const RmsNormRecipe& recipe);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_SCALAR_STEPS_H_
