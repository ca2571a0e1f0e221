// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime's norms that add a residual first; rows of rms_norm.cc's table.
//
// x = (input + skip) + bias over the last axis; skip may lack leading dims, and
// is then repeated. Half types compute in float from the operands to the
// result, as ONNX Runtime does: the sum that is normalised is not rounded, the
// one that is output is. So they differ from Add and a norm.
//   SkipSimplified: y = x / sqrt(mean(x * x) + epsilon) * gamma
//   SkipLayer:      y = (x - mean) / sqrt(variance + epsilon) * gamma + beta,
//                   where variance = mean(x * x) - mean * mean
// Outputs 1 and 2 are the mean (0 for SkipSimplified, which subtracts none) and
// one over the root, as float, output 3 the sum. Some versions of ONNX Runtime
// ignore the bias of SkipSimplified; it is added here, as documented.
#ifndef ADDNORM_RUNTIME_OPS_SKIP_NORM_H_
#define ADDNORM_RUNTIME_OPS_SKIP_NORM_H_

#include "absl/status/status.h"
#include "runtime/op.h"

namespace addnorm::runtime {

// Inputs: input, skip, gamma, bias.
absl::Status SkipSimplifiedLayerNormalization(OpContext& op);
// Inputs: input, skip, gamma, beta, bias.
absl::Status SkipLayerNormalization(OpContext& op);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_SKIP_NORM_H_
