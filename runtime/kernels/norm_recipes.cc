// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/norm_recipes.h"

namespace addnorm::runtime {
namespace {

const std::vector<ScalarStep> kRootOfMean = {
    {.op = ScalarStep::Op::kDivideByLength},
    {.op = ScalarStep::Op::kAddEpsilon},
    {.op = ScalarStep::Op::kSquareRoot}};

RowStep CastTo(ir::DataType type) { return {RowStep::Op::kCast, type}; }

}  // namespace

RmsNormRecipe RmsNormalizationRecipe(ir::DataType type, ir::DataType scale_type,
                                     ir::DataType stash_type) {
  return {.type = type,
          .square_type = stash_type,
          .scalar_steps = kRootOfMean,
          .row_steps = {CastTo(stash_type),
                        {.op = RowStep::Op::kOverFactor},
                        CastTo(type),
                        CastTo(scale_type),
                        {.op = RowStep::Op::kTimesScale}},
          .scale_types = {scale_type}};
}

RmsNormRecipe SimplifiedLayerNormalizationRecipe(ir::DataType type,
                                                 ir::DataType scale_type) {
  const ir::DataType stash = type == ir::DataType::kDouble
                                 ? ir::DataType::kDouble
                                 : ir::DataType::kFloat;
  return {.type = type,
          .square_type = stash,
          .scalar_steps = kRootOfMean,
          .row_steps = {CastTo(stash),
                        {.op = RowStep::Op::kOverFactor},
                        {.op = RowStep::Op::kTimesScale},
                        CastTo(scale_type)},
          .scale_types = {scale_type, stash}};
}

}  // namespace addnorm::runtime
