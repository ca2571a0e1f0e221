// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Do nodes have the operands, results and attributes that ONNX's schemas say?
//
// For those who run a model: an operator that is given more than it reads would
// give a result all the same. Operators that the schemas do not know (other
// domains, calls of functions, deprecated versions) are not judged, nor are
// types of values.
//
//   RETURN_IF_ERROR(CheckNodeSignatures(*model));
//   // "Neg making 'y': has 2 operands, expected 1"
#ifndef ADDNORM_PROTO_NODE_SIGNATURES_H_
#define ADDNORM_PROTO_NODE_SIGNATURES_H_

#include "absl/status/status.h"
#include "passes/ir/model.h"

namespace addnorm::proto {

// kInvalidArgument for the first node that has not: the node, where it is,
// what is expected and what was found.
absl::Status CheckNodeSignatures(const ir::Model& model);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_NODE_SIGNATURES_H_
