// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The ops of shape.cc's table that other files compute: those that move
// elements. Ops that only rename dims are in shape.cc itself.
//
//   constexpr OpRow kRows[] = {{"", "Concat", Concat}, …};
#ifndef ADDNORM_RUNTIME_OPS_SHAPE_OPS_H_
#define ADDNORM_RUNTIME_OPS_SHAPE_OPS_H_

#include "runtime/op.h"

namespace addnorm::runtime {

// transpose.cc
absl::Status Transpose(OpContext& op);
absl::Status DepthToSpace(OpContext& op);
absl::Status SpaceToDepth(OpContext& op);

// concat_split.cc
absl::Status Concat(OpContext& op);
absl::Status Split(OpContext& op);

// repeat.cc
absl::Status Expand(OpContext& op);
absl::Status Tile(OpContext& op);

// pad.cc
absl::Status Pad(OpContext& op);

// slice.cc
absl::Status Slice(OpContext& op);
absl::Status ReverseSequence(OpContext& op);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_SHAPE_OPS_H_
