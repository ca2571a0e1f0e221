// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What paired timings say: how much longer one arm takes than another, how sure
// that is, and whether anything was measured at all.
//
// Pair i are the times of both arms in round i, one right after the other, so
// that what slows the machine down slows both. Only their ratio is looked at:
// the median of the logarithms, with two intervals: of the sign test, which
// assumes nothing of how ratios are distributed, and of the block bootstrap.
// Both allow for neighbours that are alike. It knows no clock and no arms
// (bench_harness.h).
//
//   PairedEstimate gain = EstimateRatio({{fused_seconds, unfused_seconds}});
//   Verdict verdict = Judge(gain, EstimateRatio({{again_seconds, unfused}}));
#ifndef ADDNORM_RUNTIME_PAIRED_STATISTICS_H_
#define ADDNORM_RUNTIME_PAIRED_STATISTICS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace addnorm::runtime {

struct Interval {
  double low = 1;
  double high = 1;
  bool Contains(double value) const { return low <= value && value <= high; }
};

// Times of two arms in one process, round by round; of the same length.
struct PairedTimes {
  std::span<const double> arm;
  std::span<const double> base;
};

// Ratios of times, arm / base: below 1 the arm is faster.
struct PairedEstimate {
  size_t rounds = 0;
  double ratio = 1;  // exp of the median log-ratio
  // Both at 95 %. With less than kLeastRounds rounds, the range of all ratios.
  Interval sign;
  Interval bootstrap;
  // From the lower of the low ends to the higher of the high ends.
  Interval Widest() const;
};

// With fewer rounds no interval of the sign test reaches 95 %.
inline constexpr size_t kLeastRounds = 6;

// Of one or several processes. With several, the bootstrap draws processes
// first and then rounds of each, and from kLeastRounds processes on, the sign
// test takes each process as one observation.
PairedEstimate EstimateRatio(const std::vector<PairedTimes>& processes,
                             uint64_t seed = 0);

enum class Verdict : uint8_t {
  kFaster,
  kSlower,
  kNoDifference,       // the interval lies within 2 % of 1
  kNothingMeasurable,  // there may be one, but not seen through the noise
  // Whatever the ratio: a third arm is faster, which one would take instead.
  // Not Judge's, but of who knows the arms (tool/bench_result.h).
  kOfNoUse,
  kTooFewRounds
};
inline constexpr Verdict kVerdicts[] = {
    Verdict::kFaster,       Verdict::kSlower,
    Verdict::kNoDifference, Verdict::kNothingMeasurable,
    Verdict::kOfNoUse,      Verdict::kTooFewRounds};

inline constexpr double kEquivalence = 0.02;

// "faster", "slower", "no difference", "not measurable", "of no use", "too few
// rounds".
std::string_view VerdictName(Verdict verdict);

// Faster or slower only where both intervals exclude 1 and the ratio lies
// outside of what the same arm shows against itself (`floor`): a wider interval
// never makes a verdict easier. How often that is wrong, and how often it sees
// 5 or 10 %: tests/benchmarks/false_alarms.cc.
Verdict Judge(const PairedEstimate& estimate, const PairedEstimate& floor);

// How far the A/A ratio may be from 1, to either side: 0.03 is 3 %.
double NoiseFloor(const PairedEstimate& floor);

double Median(std::vector<double> values);  // 0 of none

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_PAIRED_STATISTICS_H_
