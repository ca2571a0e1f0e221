// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The recipes of the operators that are an RMSNorm by themselves. Whoever runs
// one of them, alone or in a fused body, takes its recipe from here.
//
//   AddRmsNorm::Create(RmsNormalizationRecipe(type, scale_type, stash_type));
#ifndef ADDNORM_RUNTIME_KERNELS_NORM_RECIPES_H_
#define ADDNORM_RUNTIME_KERNELS_NORM_RECIPES_H_

#include "passes/ir/type.h"
#include "runtime/recipe.h"

namespace addnorm::runtime {

// RMSNormalization as its function body in the standard has it: in the stash
// type down to x / rms, cast to the type of x, times scale. ONNX allows a scale
// of another type, in which y is then, and leaves open how: here x / rms is
// cast to that type too.
RmsNormRecipe RmsNormalizationRecipe(ir::DataType type, ir::DataType scale_type,
                                     ir::DataType stash_type);

// SimplifiedLayerNormalization, which has no function body. As ONNX Runtime's
// plain CPU kernel does it: all in float (double for a double x), x / rms and
// then times scale, and one rounding at the end to the type of the scale. Its
// stash_type is not read there, nor here. The order of ONNX Runtime's own sum
// is another (from one element to the next), and newer versions multiply by
// 1 / rms, so results agree to a few units in the last place.
RmsNormRecipe SimplifiedLayerNormalizationRecipe(ir::DataType type,
                                                 ir::DataType scale_type);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_NORM_RECIPES_H_
