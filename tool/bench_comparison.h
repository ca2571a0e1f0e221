// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Two arms of a benchmark, compared: the ratio of their times, the noise, the
// verdict, and that verdict in words.
//
// BenchCase::Compare (bench_result.h) makes them, and nobody else judges:
// terminal and JSON say what is here, and the page what is in the JSON.
//
//   const ArmComparison gain = result.Compare(kFused);
//   text += InWords(gain);  // "19 % faster (16 to 22 %)"
#ifndef ADDNORM_TOOL_BENCH_COMPARISON_H_
#define ADDNORM_TOOL_BENCH_COMPARISON_H_

#include <string>

#include "nlohmann/json.hpp"
#include "runtime/paired_statistics.h"

namespace addnorm::tool {

struct ArmComparison {
  std::string arm, base;
  runtime::PairedEstimate estimate;  // time of arm / time of base
  double noise = 0;  // what the base shows against itself: 0.03 is 3 %
  runtime::Verdict verdict = runtime::Verdict::kTooFewRounds;
  std::string better;  // of kOfNoUse: the arm to take instead
};

// "19 % faster (16 to 22 %)", "no measurable difference (3 % faster to 2 %
// slower)", "the same within 2 %", "too few rounds for a verdict (3)", "of no
// use here, as fused is faster (0.812 [0.79, 0.84] of unfused streaming)".
std::string InWords(const ArmComparison& comparison);

// For tables and charts: "19 % faster", "2.4 % slower", "no difference", "not
// measurable", "too few rounds", "of no use".
std::string InBrief(const ArmComparison& comparison);

// "0.812 [0.79, 0.84]"; "0.812" with too few rounds for an interval, "-" with
// none.
std::string RatioText(const runtime::PairedEstimate& estimate);

// {"rounds", "ratio", "interval", "sign_interval", "bootstrap_interval"}
nlohmann::ordered_json ToJson(const runtime::PairedEstimate& estimate);
runtime::PairedEstimate ToEstimate(const nlohmann::ordered_json& json);

// {"base", those of the estimate, "noise", "verdict", "words"}, and "better".
nlohmann::ordered_json ToJson(const ArmComparison& comparison);
ArmComparison ToComparison(std::string arm, const nlohmann::ordered_json& json);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_COMPARISON_H_
