// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The structure of two files (passes/structure.h), with their weights compared
// through proto/ and ONNX's schemas consulted. Files of the same bytes are
// equal, whatever is in them.
//
//   ASSIGN_OR_RETURN(passes::Structure structure, CheckStructure(a, b));
#ifndef ADDNORM_TOOL_STRUCTURE_CHECK_H_
#define ADDNORM_TOOL_STRUCTURE_CHECK_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "passes/structure.h"
#include "tool/fusion.h"

namespace addnorm::tool {

absl::StatusOr<passes::Structure> CheckStructure(const LoadedModel& a,
                                                 const LoadedModel& b);

// Values of B to those of A that should be equal; drops initializers that are
// not the same bytes. A right proof has none: each pair is compared for itself.
using ValueMap = absl::flat_hash_map<const ir::Value*, const ir::Value*>;
absl::Status KeepEqualWeights(const LoadedModel& a, const LoadedModel& b,
                              ValueMap& twins);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_STRUCTURE_CHECK_H_
