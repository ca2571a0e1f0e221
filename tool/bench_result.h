// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What `bench` measured, before anything is made of it: raw times by case, arm,
// process and round; and the comparisons that text and JSON both need.
//
//   const PairedEstimate gain = result.Estimate(kFused, kUnfused);
#ifndef ADDNORM_TOOL_BENCH_RESULT_H_
#define ADDNORM_TOOL_BENCH_RESULT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/bench_harness.h"
#include "runtime/compare.h"
#include "runtime/paired_statistics.h"

namespace addnorm::tool {

struct ArmTimes {
  std::string name;
  size_t base = 0;  // the arm to compare with, like for like
  // Of a base: the same once more, in memory of its own, if there is such an
  // arm; else what the first base shows against itself is taken for its noise.
  size_t again = 1;
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
  runtime::Verdict Judge(size_t arm, size_t base) const;
  // With the base that is like it.
  runtime::Verdict Judge(size_t arm) const {
    return Judge(arm, arms[arm].base);
  }
  runtime::PairedEstimate Estimate(size_t arm) const {
    return Estimate(arm, arms[arm].base);
  }
  runtime::PairedEstimate Floor(size_t base = 0) const;
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

// "19 % faster (16 to 22 %)", "no measurable difference (3 % faster to 2 %
// slower)", "the same within 2 %", "too few rounds for a verdict (3)".
std::string InWords(const runtime::PairedEstimate& estimate,
                    runtime::Verdict verdict);

// "0.812 [0.79, 0.84]"; "0.812" with too few rounds for an interval, "-" with
// none.
std::string RatioText(const runtime::PairedEstimate& estimate);

// "3.1 %: what unfused shows against itself", or that it is not known.
std::string NoiseText(const runtime::PairedEstimate& floor);

// "on core 3", "on cores 3, 5", "not pinned to cores".
std::string CoresText(const std::vector<int>& cores);

// "950 ns", "3.20 µs", "2.05 ms", "1.25 s".
std::string ShortSeconds(double seconds);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_RESULT_H_
