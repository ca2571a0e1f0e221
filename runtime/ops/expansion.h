// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensors whose elements are repeated to larger dims, as numpy's broadcasting
// has it.
//
// For operands that are small or are wanted whole. Element-wise ops walk along
// operands as they are (runtime/broadcast.h).
//
//   ASSIGN_OR_RETURN(const Tensor scale, Expanded(op, op.input(1), row_dims));
#ifndef ADDNORM_RUNTIME_OPS_EXPANSION_H_
#define ADDNORM_RUNTIME_OPS_EXPANSION_H_

#include "absl/status/statusor.h"
#include "runtime/op.h"

namespace addnorm::runtime {

// The tensor itself where it has these dims. kInvalidArgument where it does not
// expand to them: it may have more axes only in front, of size 1.
absl::StatusOr<Tensor> Expanded(OpContext& op, const Tensor& tensor,
                                const Dims& dims);

// Fills `to`, to whose dims `from` expands; it has no more axes.
void CopyExpanded(ThreadPool& threads, const Tensor& from, Tensor& to);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_EXPANSION_H_
