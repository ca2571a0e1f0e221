// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The ops of indexing.cc's table, which has no more than the table: each family
// is computed in a file of its own.
//
//   constexpr OpRow kRows[] = {{"", "Gather", Gather}, …};
#ifndef ADDNORM_RUNTIME_OPS_INDEXING_OPS_H_
#define ADDNORM_RUNTIME_OPS_INDEXING_OPS_H_

#include "runtime/op.h"

namespace addnorm::runtime {

// gather.cc
absl::Status Compress(OpContext& op);
absl::Status Gather(OpContext& op);
absl::Status GatherElements(OpContext& op);
absl::Status GatherNd(OpContext& op);

// scatter.cc
absl::Status ScatterElements(OpContext& op);
absl::Status ScatterNd(OpContext& op);

// tensor_scatter.cc
absl::Status TensorScatter(OpContext& op);

// selection.cc
absl::Status NonZero(OpContext& op);
absl::Status TopK(OpContext& op);
absl::Status Trilu(OpContext& op);

// unique.cc
absl::Status Unique(OpContext& op);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_INDEXING_OPS_H_
