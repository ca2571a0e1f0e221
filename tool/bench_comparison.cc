// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/printable.h"

namespace addnorm::tool {
namespace {

using Json = nlohmann::ordered_json;
using runtime::Interval;
using runtime::PairedEstimate;
using runtime::Verdict;

// "19 % faster", "2.4 % slower": time saved, or time more.
std::string Change(double ratio) {
  const double percent = 100 * std::abs(1 - ratio);
  // Below what would be 10.0.
  return fmt::format("{:.{}f} % {}", percent, percent < 9.95 ? 1 : 0,
                     ratio < 1 ? "faster" : "slower");
}

// "16 to 22 %"
std::string ChangeRange(const Interval& interval) {
  const double low = std::abs(1 - interval.low);
  const double high = std::abs(1 - interval.high);
  return fmt::format("{:.1f} to {:.1f} %", 100 * std::min(low, high),
                     100 * std::max(low, high));
}

std::string NothingMeasurable(const Interval& interval) {
  const std::string low = Change(interval.low), high = Change(interval.high);
  return interval.Contains(1)
             ? fmt::format("no measurable difference ({} to {})", low, high)
             : fmt::format(
                   "no measurable difference (between {} and {}, "
                   "within the noise)",
                   low, high);
}

Json ToJson(const Interval& interval) { return {interval.low, interval.high}; }

Interval ToInterval(const Json& json) {
  return {json.at(0).get<double>(), json.at(1).get<double>()};
}

Verdict ToVerdict(const std::string& name) {
  for (const Verdict verdict : runtime::kVerdicts) {
    if (runtime::VerdictName(verdict) == name) return verdict;
  }
  return Verdict::kTooFewRounds;
}

}  // namespace

std::string InWords(const ArmComparison& comparison) {
  const PairedEstimate& estimate = comparison.estimate;
  switch (comparison.verdict) {
    case Verdict::kTooFewRounds:
      return fmt::format("too few rounds for a verdict ({})", estimate.rounds);
    case Verdict::kNoDifference:
      return "the same within 2 %";
    case Verdict::kNothingMeasurable:
      return NothingMeasurable(estimate.Widest());
    case Verdict::kOfNoUse:
      return fmt::format("of no use here, as {} is faster ({} of {})",
                         ir::Printable(comparison.better), RatioText(estimate),
                         ir::Printable(comparison.base));
    case Verdict::kFaster:
    case Verdict::kSlower:
      break;
  }
  return fmt::format("{} ({})", Change(estimate.ratio),
                     ChangeRange(estimate.Widest()));
}

std::string InBrief(const ArmComparison& comparison) {
  const bool has_change = comparison.verdict == Verdict::kFaster ||
                          comparison.verdict == Verdict::kSlower;
  return has_change ? Change(comparison.estimate.ratio)
                    : std::string(runtime::VerdictName(comparison.verdict));
}

std::string RatioText(const PairedEstimate& estimate) {
  if (estimate.rounds == 0) return "-";
  if (estimate.rounds < runtime::kLeastRounds)
    return fmt::format("{:.3f}", estimate.ratio);
  const Interval interval = estimate.Widest();
  return fmt::format("{:.3f} [{:.2f}, {:.2f}]", estimate.ratio, interval.low,
                     interval.high);
}

Json ToJson(const PairedEstimate& estimate) {
  return {{"rounds", estimate.rounds},
          {"ratio", estimate.ratio},
          {"interval", ToJson(estimate.Widest())},
          {"sign_interval", ToJson(estimate.sign)},
          {"bootstrap_interval", ToJson(estimate.bootstrap)}};
}

PairedEstimate ToEstimate(const Json& json) {
  return {.rounds = json.at("rounds").get<size_t>(),
          .ratio = json.at("ratio").get<double>(),
          .sign = ToInterval(json.at("sign_interval")),
          .bootstrap = ToInterval(json.at("bootstrap_interval"))};
}

Json ToJson(const ArmComparison& comparison) {
  Json json{{"base", comparison.base}};
  json.update(ToJson(comparison.estimate));
  json["noise"] = comparison.noise;
  json["verdict"] = runtime::VerdictName(comparison.verdict);
  if (!comparison.better.empty()) json["better"] = comparison.better;
  json["words"] = InWords(comparison);
  return json;
}

ArmComparison ToComparison(std::string arm, const Json& json) {
  return {.arm = std::move(arm),
          .base = json.at("base").get<std::string>(),
          .estimate = ToEstimate(json),
          .noise = json.at("noise").get<double>(),
          .verdict = ToVerdict(json.at("verdict").get<std::string>()),
          .better = json.value("better", "")};
}

}  // namespace addnorm::tool
