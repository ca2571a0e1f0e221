// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Normalisations that normalization.cc lists in its table and other files
// implement.
#ifndef ADDNORM_RUNTIME_OPS_NORMALIZATION_H_
#define ADDNORM_RUNTIME_OPS_NORMALIZATION_H_

#include "absl/status/status.h"
#include "runtime/op.h"

namespace addnorm::runtime {

// softmax.cc
absl::Status Softmax(OpContext& op);
absl::Status LogSoftmax(OpContext& op);
absl::Status Hardmax(OpContext& op);

// layer_normalization.cc
absl::Status LayerNormalization(OpContext& op);

// mean_variance_normalization.cc
absl::Status MeanVarianceNormalization(OpContext& op);

// channel_normalization.cc
absl::Status BatchNormalization(OpContext& op);
absl::Status GroupNormalization(OpContext& op);
absl::Status InstanceNormalization(OpContext& op);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_NORMALIZATION_H_
