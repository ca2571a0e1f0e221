// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What `bench` measured, before anything is made of it: raw times by case, arm,
// process and round; and what comparing two arms comes to.
//
//   const ArmComparison gain = result.Compare(kFused);
#ifndef ADDNORM_TOOL_BENCH_RESULT_H_
#define ADDNORM_TOOL_BENCH_RESULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/bench_harness.h"
#include "runtime/compare.h"
#include "runtime/paired_statistics.h"
#include "tool/bench_comparison.h"

namespace addnorm::tool {

struct ArmTimes {
  std::string name;
  size_t base = 0;  // the arm to compare with, like for like
  // Of a base: the same once more, in memory of its own, if there is such an
  // arm; else what the first base shows against itself is taken for its noise.
  size_t again = 1;
  // The arm that one would take instead: where it is faster, this one's
  // comparison with its base is one of two bad choices.
  std::optional<size_t> instead = std::nullopt;
  // Seconds of a call, by process and round.
  std::vector<std::vector<double>> processes;

  double Median() const;
};

// Arms that were timed in the same rounds. Arm 0 is the base, arm 1 the same
// once more: what these differ by is noise.
struct BenchCase {
  std::vector<ArmTimes> arms;
  int64_t calls = 1;  // in an epoch

  runtime::PairedEstimate Estimate(size_t arm, size_t base) const;
  // What the base shows against itself.
  runtime::PairedEstimate Floor(size_t base = 0) const;
  // By the rule of runtime::Judge alone.
  ArmComparison Compare(size_t arm, size_t base) const;
  // Like for like, with its base: kOfNoUse where one would take another arm.
  ArmComparison Compare(size_t arm) const;
  // Not bases, nor those that are their base once more.
  bool IsCompared(size_t arm) const;
  size_t rounds() const;
};

// An arm that is not of this runtime, or of another model: what its results are
// beside those of the unfused arm.
struct OtherArm {
  std::string name;
  size_t arm = 0;  // of the case
  runtime::Comparison results = {};
};

// "the same bits", "other bits in 12 % of the results".
std::string ResultsText(const runtime::Comparison& results);

// The arms' names and times, each with the base of its place. An arm "x again"
// is what its base x shows against itself.
BenchCase MakeCase(const std::vector<runtime::BenchArm>& arms,
                   const std::vector<size_t>& bases, runtime::Timings timings);

// The object of an arm gets its "comparison", if it has one.
void AddComparison(const BenchCase& times, size_t arm,
                   nlohmann::ordered_json& json);

// "3.1 %: what unfused shows against itself", or that it is not known.
std::string NoiseText(const runtime::PairedEstimate& floor);

// "on core 3", "on cores 3, 5", "not pinned to cores".
std::string CoresText(const std::vector<int>& cores);

// "950 ns", "3.20 µs", "2.05 ms", "1.25 s".
std::string ShortSeconds(double seconds);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_RESULT_H_
