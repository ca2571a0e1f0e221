// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/simd_option.h"

#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "runtime/kernels/simd_target.h"

namespace addnorm::tool {

void AddSimdOption(CLI::App& app, std::string& simd) {
  std::vector<std::string> names;
  for (const runtime::SimdTarget& target : runtime::SimdTargets())
    names.push_back(target.name);
  app.add_option("--simd", simd,
                 fmt::format("Kernels for one of {}\n(default: the first)",
                             fmt::join(names, ", ")))
      ->option_text("TARGET")
      ->transform(CLI::IsMember(names, CLI::ignore_case));
}

void ApplySimd(const std::string& simd) {
  if (!simd.empty()) runtime::ChooseSimdTarget(simd);
}

}  // namespace addnorm::tool
