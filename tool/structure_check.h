// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The structure of two files (passes/structure.h), with their weights compared
// through proto/ and ONNX's schemas consulted.
//
//   ASSIGN_OR_RETURN(passes::Structure structure, CheckStructure(a, b));
#ifndef ADDNORM_TOOL_STRUCTURE_CHECK_H_
#define ADDNORM_TOOL_STRUCTURE_CHECK_H_

#include "absl/status/statusor.h"
#include "passes/structure.h"
#include "tool/fusion.h"

namespace addnorm::tool {

absl::StatusOr<passes::Structure> CheckStructure(const LoadedModel& a,
                                                 const LoadedModel& b);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_STRUCTURE_CHECK_H_
