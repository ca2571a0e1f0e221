// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What is checked of an imported model as a whole: that its nodes can be put in
// an order, and its functions expanded. Linear, and without recursion.
//
//   RETURN_IF_ERROR(CheckAcyclic(model));
#ifndef ADDNORM_PROTO_IMPORT_CHECKS_H_
#define ADDNORM_PROTO_IMPORT_CHECKS_H_

#include "absl/status/status.h"
#include "passes/ir/model.h"

namespace addnorm::proto {

// InvalidArgument that names the nodes of a cycle. Nodes must be numbered.
absl::Status CheckAcyclic(ir::Model& model);

// InvalidArgument for a function that is there twice, or that calls itself,
// also through others.
absl::Status CheckFunctions(ir::Model& model);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_IMPORT_CHECKS_H_
