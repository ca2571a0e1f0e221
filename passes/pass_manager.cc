// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_manager.h"

#include <algorithm>

#include "fmt/format.h"
#include "passes/fuse_add_rms_norm.h"
#include "passes/ir/verifier.h"

namespace addnorm::passes {
namespace {

constexpr Pass kPasses[] = {
    {"fuse-add-rms-norm",
     "fuses each residual Add with the RMSNorm that reads its sum",
     FuseAddRmsNorm},
};

// Set by the dev and asan presets.
constexpr bool kVerifyIr = ADDNORM_VERIFY_IR != 0;

}  // namespace

std::span<const Pass> AllPasses() { return kPasses; }

absl::Status RunPasses(ir::Model& model,
                       const std::vector<std::string_view>& names,
                       PassContext& context) {
  for (std::string_view name : names) {
    const auto pass =
        std::find_if(std::begin(kPasses), std::end(kPasses),
                     [name](const Pass& p) { return p.name == name; });
    if (pass == std::end(kPasses))
      return absl::NotFoundError(fmt::format("no pass '{}'", name));
    if (absl::Status status = pass->run(model, context); !status.ok())
      return status;
    if (!kVerifyIr) continue;
    if (absl::Status status = ir::Verify(model); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace addnorm::passes
