// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What can be said of a recipe without operands: whether its types fit
// together, and which loop of row_passes.h does its row steps. A part of
// add_rms_norm.cc; not for others.
//
//   if (const auto key = SecondPassKeyOf(recipe)) pass = SecondPassFor(*key);
#ifndef ADDNORM_RUNTIME_KERNELS_RECIPE_FORM_H_
#define ADDNORM_RUNTIME_KERNELS_RECIPE_FORM_H_

#include <optional>

#include "absl/status/statusor.h"
#include "runtime/kernels/row_passes.h"
#include "runtime/recipe.h"

namespace addnorm::runtime {

// The type of y; kInvalidArgument where a factor or a scale is not of the type
// of the row that it meets.
absl::StatusOr<ir::DataType> ResultType(const RmsNormRecipe& recipe);

// Every value of `from` is one of `to`.
bool IsExact(ir::DataType from, ir::DataType to);

// nullopt where the row steps have to be done one by one. Its scale is the
// type of the row; a loop may also read one that is exact in that.
std::optional<SecondPassKey> SecondPassKeyOf(const RmsNormRecipe& recipe);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_RECIPE_FORM_H_
