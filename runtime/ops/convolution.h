// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Operators with windows that convolution.cc lists in its table and other files
// implement.
#ifndef ADDNORM_RUNTIME_OPS_CONVOLUTION_H_
#define ADDNORM_RUNTIME_OPS_CONVOLUTION_H_

#include "absl/status/status.h"
#include "runtime/op.h"

namespace addnorm::runtime {

// causal_convolution.cc
absl::Status CausalConvWithState(OpContext& op);

// pooling.cc
absl::Status AveragePool(OpContext& op);
absl::Status GlobalAveragePool(OpContext& op);
absl::Status GlobalMaxPool(OpContext& op);
absl::Status MaxPool(OpContext& op);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_CONVOLUTION_H_
