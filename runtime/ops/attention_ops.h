// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of the attention ops, for the tables in attention.cc and
// contrib.cc. What each computes, and where it rounds, stands in its file.
#ifndef ADDNORM_RUNTIME_OPS_ATTENTION_OPS_H_
#define ADDNORM_RUNTIME_OPS_ATTENTION_OPS_H_

#include "runtime/op.h"

namespace addnorm::runtime {

absl::Status LinearAttention(OpContext& op);         // linear_attention.cc
absl::Status RotaryEmbedding(OpContext& op);         // rotary.cc
absl::Status ContribRotaryEmbedding(OpContext& op);  // rotary.cc
absl::Status GroupQueryAttention(OpContext& op);     // group_query_attention.cc
absl::Status MultiHeadAttention(OpContext& op);      // multi_head_attention.cc
absl::Status ContribAttention(OpContext& op);        // contrib_attention.cc
absl::Status MatMulNBits(OpContext& op);             // mat_mul_nbits.cc
absl::Status GatherBlockQuantized(OpContext& op);  // gather_block_quantized.cc

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_ATTENTION_OPS_H_
