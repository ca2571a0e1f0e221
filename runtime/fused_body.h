// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Translates the body of a fused op to the recipe that it spells.
//
// The body is followed node by node with symbols in place of tensors: "x cast
// to float", "the sum of its squares, then / n", "x * factor * scale". So any
// spelling is understood that is made of these steps, whatever the function's
// name; what is not understood is run node by node. It also looks into calls of
// further functions. Pure; it computes nothing.
//
//   const std::optional<RmsNormRecipe> recipe =
//       TranslateBody(function, attributes, operands);
#ifndef ADDNORM_RUNTIME_FUSED_BODY_H_
#define ADDNORM_RUNTIME_FUSED_BODY_H_

#include <optional>
#include <span>

#include "passes/ir/model.h"
#include "runtime/attributes.h"
#include "runtime/recipe.h"
#include "runtime/tensor.h"

namespace addnorm::runtime {

// The recipe of a function with operands (a, b), (a, b, scale), or these and
// epsilon last, and results (y, sum). Of the operands only types and ranks
// matter, and the element of epsilon. nullopt: the body is something else, or a
// recipe cannot say it.
std::optional<RmsNormRecipe> TranslateBody(const ir::Function& function,
                                           const Attributes& call,
                                           std::span<const Tensor> operands);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_FUSED_BODY_H_
