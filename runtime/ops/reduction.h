// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Operators along one axis that reduction.cc lists in its table and other files
// implement.
#ifndef ADDNORM_RUNTIME_OPS_REDUCTION_H_
#define ADDNORM_RUNTIME_OPS_REDUCTION_H_

#include "absl/status/status.h"
#include "runtime/op.h"

namespace addnorm::runtime {

// arg_max.cc
absl::Status ArgMax(OpContext& op);
absl::Status ArgMin(OpContext& op);

// cumulative.cc
absl::Status CumSum(OpContext& op);
absl::Status CumProd(OpContext& op);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_REDUCTION_H_
