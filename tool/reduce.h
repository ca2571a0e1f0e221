// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The smallest pair of models that shows a difference which verify found: the
// nodes of each between values that both computed alike and the first one that
// differs, with the data that they were given. A difference inside of a loop,
// a branch or a function is shown by the node that has it, whole.
//
// Layout as ONNX's backend tests have it: DIR/a.onnx, DIR/b.onnx,
// DIR/test_data_set_0/input_N.pb; `verify DIR/a.onnx DIR/b.onnx --inputs
// DIR/test_data_set_0` finds the difference again.
//
//   RETURN_IF_ERROR(Reduce(a, b, done, request.inputs, "failing"));
#ifndef ADDNORM_TOOL_REDUCE_H_
#define ADDNORM_TOOL_REDUCE_H_

#include <string>

#include "absl/status/status.h"
#include "tool/fusion.h"
#include "tool/verification.h"

namespace addnorm::tool {

// kFailedPrecondition if it is there and not empty.
absl::Status CheckReduceFolder(const std::string& folder);

// kFailedPrecondition if nothing differed on what was run, kUnimplemented where
// the part cannot be a model of its own.
absl::Status Reduce(const LoadedModel& a, const LoadedModel& b,
                    const Verification& done, const InputRequest& inputs,
                    const std::string& folder);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_REDUCE_H_
