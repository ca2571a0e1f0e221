// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/fusion_report.h"

#include <algorithm>

namespace addnorm::passes {

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFused:
      return "fused";
    case Verdict::kNotFused:
      return "not fused";
    case Verdict::kNoAdd:
      return "no residual add";
    case Verdict::kAlreadyFused:
      return "already fused";
  }
  return "";
}

int FusionReport::Count(Verdict verdict) const {
  return static_cast<int>(std::count_if(
      candidates.begin(), candidates.end(),
      [verdict](const Candidate& c) { return c.verdict == verdict; }));
}

}  // namespace addnorm::passes
