// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_result.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace addnorm::tool {
namespace {

using runtime::Interval;
using runtime::PairedEstimate;
using runtime::Verdict;

// "19 % faster", "2.4 % slower": time saved, or time more.
std::string Change(double ratio) {
  const double percent = 100 * std::abs(1 - ratio);
  return fmt::format("{:.{}f} % {}", percent, percent < 10 ? 1 : 0,
                     ratio < 1 ? "faster" : "slower");
}

}  // namespace

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

Verdict BenchCase::Judge(size_t arm, size_t base) const {
  return runtime::Judge(Estimate(arm, base), Floor(base));
}

PairedEstimate BenchCase::Floor(size_t base) const {
  const size_t again = arms[base].again;
  return again == 1 ? Estimate(1, 0) : Estimate(again, base);
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

std::string InWords(const PairedEstimate& estimate, Verdict verdict) {
  const Interval interval = estimate.Widest();
  switch (verdict) {
    case Verdict::kTooFewRounds:
      return fmt::format("too few rounds for a verdict ({})", estimate.rounds);
    case Verdict::kNoDifference:
      return "the same within 2 %";
    case Verdict::kNothingMeasurable:
      if (!interval.Contains(1)) {
        return fmt::format(
            "no measurable difference (between {} and {}, within the noise)",
            Change(interval.low), Change(interval.high));
      }
      return fmt::format("no measurable difference ({} to {})",
                         Change(interval.low), Change(interval.high));
    case Verdict::kFaster:
    case Verdict::kSlower:
      break;
  }
  return fmt::format(
      "{} ({:.1f} to {:.1f} %)", Change(estimate.ratio),
      100 * std::min(std::abs(1 - interval.high), std::abs(1 - interval.low)),
      100 * std::max(std::abs(1 - interval.high), std::abs(1 - interval.low)));
}

std::string RatioText(const PairedEstimate& estimate) {
  if (estimate.rounds == 0) return "-";
  if (estimate.rounds < runtime::kLeastRounds)
    return fmt::format("{:.3f}", estimate.ratio);
  const Interval interval = estimate.Widest();
  return fmt::format("{:.3f} [{:.2f}, {:.2f}]", estimate.ratio, interval.low,
                     interval.high);
}

std::string NoiseText(const PairedEstimate& floor) {
  if (floor.rounds < runtime::kLeastRounds)
    return fmt::format("not known ({} of {} rounds needed)",
                       floor.rounds, runtime::kLeastRounds);
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
