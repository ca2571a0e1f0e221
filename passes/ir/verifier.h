// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks the IR's own invariants; run after every pass in dev builds and by
// tests.
//
// It is not a check of the file (proto/import.h does that) and not ONNX's
// checker: a failure is a bug of ours.
//
//   absl::Status status = ir::Verify(model);
#ifndef ADDNORM_PASSES_IR_VERIFIER_H_
#define ADDNORM_PASSES_IR_VERIFIER_H_

#include "absl/status/status.h"
#include "passes/ir/model.h"

namespace addnorm::ir {

// Uses and operands agree, producers and outputs agree, every operand is made
// in the node's graph or an outer one, and calls of functions that a pass made
// have the function's number of inputs and outputs.
absl::Status Verify(Model& model);

}  // namespace addnorm::ir

#endif  // ADDNORM_PASSES_IR_VERIFIER_H_
