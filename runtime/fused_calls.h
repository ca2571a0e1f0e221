// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls of fused ops, run by the row kernel instead of node by node.
//
// A function is taken if its body can be translated to a recipe
// (fused_body.h), whatever its name and domain. Recipes are kept, by function,
// types and epsilon. Shapes that the kernel does not take (operands that
// broadcast) are left to the nodes.
//
//   ASSIGN_OR_RETURN(bool done, fused_calls.Run(function, op));
//   if (!done) RunNodeByNode();
#ifndef ADDNORM_RUNTIME_FUSED_CALLS_H_
#define ADDNORM_RUNTIME_FUSED_CALLS_H_

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "passes/ir/model.h"
#include "runtime/kernels/add_rms_norm.h"
#include "runtime/op.h"

namespace addnorm::runtime {

// What OpContext needs to know of a fused op: the sum takes the residual's
// buffer and y the branch's, where those die.
extern const OpRow kFusedRow;

class FusedCalls {
 public:
  // Makes the call's outputs; false if it has to be run node by node, and then
  // nothing was done.
  absl::StatusOr<bool> Run(const ir::Function& function, OpContext& call);

 private:
  const std::optional<AddRmsNorm>& Find(const ir::Function& function,
                                        const OpContext& call);

  absl::flat_hash_map<std::string, std::optional<AddRmsNorm>> kernels_;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_FUSED_CALLS_H_
