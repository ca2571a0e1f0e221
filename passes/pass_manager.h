// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The list of passes and how they are run.
//
//   PassContext context;
//   absl::Status status = RunPasses(model, {"fuse-add-rms-norm"}, context);
//   // context.report says what was fused, and what was not and why
#ifndef ADDNORM_PASSES_PASS_MANAGER_H_
#define ADDNORM_PASSES_PASS_MANAGER_H_

#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "passes/pass.h"

namespace addnorm::passes {

std::span<const Pass> AllPasses();

// Runs the named passes in the given order; in builds with ADDNORM_VERIFY_IR
// the IR is verified after each. NotFound if a name is not in AllPasses().
absl::Status RunPasses(ir::Model& model,
                       const std::vector<std::string_view>& names,
                       PassContext& context);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_PASS_MANAGER_H_
