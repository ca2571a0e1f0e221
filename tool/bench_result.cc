// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_result.h"

#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace addnorm::tool {

using runtime::PairedEstimate;
using runtime::Verdict;

double ArmTimes::Median() const {
  std::vector<double> all;
  for (const auto& rounds : processes)
    all.insert(all.end(), rounds.begin(), rounds.end());
  return runtime::Median(std::move(all));
}

PairedEstimate BenchCase::Estimate(size_t arm, size_t base) const {
  std::vector<runtime::PairedTimes> times;
  for (size_t i = 0; i < arms[arm].processes.size(); ++i)
    times.push_back({arms[arm].processes[i], arms[base].processes[i]});
  return runtime::EstimateRatio(times);
}

PairedEstimate BenchCase::Floor(size_t base) const {
  const size_t again = arms[base].again;
  return again == 1 ? Estimate(1, 0) : Estimate(again, base);
}

ArmComparison BenchCase::Compare(size_t arm, size_t base) const {
  const PairedEstimate floor = Floor(base);
  ArmComparison comparison{.arm = arms[arm].name,
                           .base = arms[base].name,
                           .estimate = Estimate(arm, base),
                           .noise = runtime::NoiseFloor(floor),
                           .better = {}};
  comparison.verdict = runtime::Judge(comparison.estimate, floor);
  return comparison;
}

ArmComparison BenchCase::Compare(size_t arm) const {
  ArmComparison comparison = Compare(arm, arms[arm].base);
  const std::optional<size_t> instead = arms[arm].instead;
  if (!instead || Compare(arm, *instead).verdict != Verdict::kSlower)
    return comparison;
  comparison.verdict = Verdict::kOfNoUse;
  comparison.better = arms[*instead].name;
  return comparison;
}

bool BenchCase::IsCompared(size_t arm) const {
  const size_t base = arms[arm].base;
  return base != arm && arms[base].again != arm;
}

size_t BenchCase::rounds() const {
  size_t rounds = 0;
  for (const auto& process : arms[0].processes) rounds += process.size();
  return rounds;
}

std::string ResultsText(const runtime::Comparison& results) {
  if (!results.mismatch.empty()) return "other results: " + results.mismatch;
  if (results.is_equal()) return "the same bits";
  if (results.is_equal_but_for_nans()) return "the same but for bits of NaNs";
  return fmt::format("other bits in {:.2g} % of the results",
                     100 * static_cast<double>(results.different) /
                         static_cast<double>(results.elements));
}

BenchCase MakeCase(const std::vector<runtime::BenchArm>& arms,
                   const std::vector<size_t>& bases, runtime::Timings timings) {
  BenchCase made;
  made.calls = timings.calls;
  for (size_t i = 0; i < arms.size(); ++i) {
    made.arms.push_back({.name = arms[i].name,
                         .base = bases[i],
                         .processes = {std::move(timings.seconds[i])}});
  }
  for (size_t i = 0; i < arms.size(); ++i) {
    ArmTimes& base = made.arms[bases[i]];
    if (arms[i].name == base.name + " again") base.again = i;
  }
  return made;
}

void AddComparison(const BenchCase& times, size_t arm,
                   nlohmann::ordered_json& json) {
  if (times.IsCompared(arm)) json["comparison"] = ToJson(times.Compare(arm));
}

std::string NoiseText(const PairedEstimate& floor) {
  if (floor.rounds < runtime::kLeastRounds)
    return fmt::format("not known ({} of {} rounds needed)", floor.rounds,
                       runtime::kLeastRounds);
  return fmt::format("{:.1f} %: what unfused shows against itself",
                     100 * runtime::NoiseFloor(floor));
}

std::string CoresText(const std::vector<int>& cores) {
  if (cores.empty()) return "not pinned to cores";
  return fmt::format("on core{} {}", cores.size() == 1 ? "" : "s",
                     fmt::join(cores, ", "));
}

std::string ShortSeconds(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

}  // namespace addnorm::tool
