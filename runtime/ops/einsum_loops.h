// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The equation of an Einsum and its operands as loops: every label is a loop;
// the operands are read with the label's distance, which is 0 where they lack
// it and the sum of two where they have it twice (a diagonal).
//
// How the loops are run is einsum.cc's.
//
//   ASSIGN_OR_RETURN(const EinsumLoops loops, EinsumLoopsOf(op));
#ifndef ADDNORM_RUNTIME_OPS_EINSUM_LOOPS_H_
#define ADDNORM_RUNTIME_OPS_EINSUM_LOOPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/op.h"

namespace addnorm::runtime {

struct EinsumLoop {
  int64_t size = 1;
  std::vector<int64_t> strides;  // one an operand
};

struct EinsumLoops {
  // Those of the result, in its order, and those that it lacks, in the order
  // in which the equation names them.
  std::vector<EinsumLoop> kept, summed;
  Dims dims;  // of the result
  int64_t summed_count = 1;
};

absl::StatusOr<EinsumLoops> EinsumLoopsOf(const OpContext& op);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_EINSUM_LOOPS_H_
