// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of fused ops: a readable, pure function of the body.
//
//   AddRmsNorm_reciprocal_f32_early_f16_5c0e12ab
//   variant    reciprocal: tags of the rows of rms_norm_variants.cc
//   types      f32, what the root is computed in; then, where the result is
//              narrower, `early` (rounded, then scaled) or `late`, and its type
//   digest     of the whole body, for what the tags do not say
#ifndef ADDNORM_PASSES_BODY_NAME_H_
#define ADDNORM_PASSES_BODY_NAME_H_

#include <string>
#include <string_view>

#include "passes/ir/model.h"

namespace addnorm::passes {

// A text that two functions share exactly if their bodies do the same with the
// same forms: inputs, outputs, every node with its attributes and constants,
// and the bodies of the functions that it calls.
std::string BodyKey(const ir::Function& function);

std::string BodyName(std::string_view variant, const ir::Function& function);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_BODY_NAME_H_
