// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// fuse-add-rms-norm: turns each residual Add and the RMSNorm that reads its sum
// into one call of a function whose body is those nodes.
//
// Before:
//   s   = Add(a, b)
//   sq  = Pow(s, two)
//   …
//   y   = Mul(n, w)
//   z   = MatMul(s, k)
// After:
//   y, s = ai.addnorm.AddRmsNorm_reciprocal_f32_…<epsilon = 1e-06>(a, b, w)
//   z    = MatMul(s, k)
//
// Inlining the function gives back the nodes of before. What is not fused is in
// the report, with the reason.
#ifndef ADDNORM_PASSES_FUSE_ADD_RMS_NORM_H_
#define ADDNORM_PASSES_FUSE_ADD_RMS_NORM_H_

#include "absl/status/status.h"
#include "passes/pass.h"

namespace addnorm::passes {

absl::Status FuseAddRmsNorm(ir::Model& model, PassContext& context);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_FUSE_ADD_RMS_NORM_H_
