// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of com.microsoft's ops on block-wise quantised weights.
#include "runtime/ops/attention_ops.h"
#include "runtime/ops/groups.h"

namespace addnorm::runtime {
namespace {

constexpr OpRow kRows[] = {
    {"com.microsoft", "GatherBlockQuantized", GatherBlockQuantized},
    {"com.microsoft", "MatMulNBits", MatMulNBits},
};

}  // namespace

OpTable ContribOps() { return kRows; }

}  // namespace addnorm::runtime
