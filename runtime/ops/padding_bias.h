// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The padding masks of com.microsoft's attention ops as numbers to add to the
// scores: zero for a token, the op's mask_filter_value for padding.
//
//   ASSIGN_OR_RETURN(Tensor bias, PaddingBias(op, op.input(3), shape));
#ifndef ADDNORM_RUNTIME_OPS_PADDING_BIAS_H_
#define ADDNORM_RUNTIME_OPS_PADDING_BIAS_H_

#include "runtime/ops/attention_core.h"

namespace addnorm::runtime {

// mask: int32 or int64, [batch] (the number of keys that are tokens),
// [batch, kv_rows] or [batch, q_rows, kv_rows] (zero for padding). The result
// broadcasts to the scores; kUnimplemented for other shapes.
absl::StatusOr<Tensor> PaddingBias(OpContext& op, const Tensor& mask,
                                   const AttentionShape& shape);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_PADDING_BIAS_H_
