// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Synthetic timings of known truth: how often intervals hold it, and how often
// a verdict is false.
#include "runtime/paired_statistics.h"

#include <cmath>
#include <random>
#include <vector>

#include "tests/support/catch.h"

namespace addnorm::tests {
namespace {

using runtime::EstimateRatio;
using runtime::Interval;
using runtime::Judge;
using runtime::PairedEstimate;
using runtime::PairedTimes;
using runtime::Verdict;

// Timings of a machine that is shared: it drifts, an epoch now and then is
// interrupted, and noise lasts for a while.
class Machine {
 public:
  Machine(uint64_t seed, double correlation)
      : random_(seed), correlation_(correlation) {}

  // Times of arms in each round; arm i takes ratios[i] times 1 ms.
  std::vector<std::vector<double>> Run(const std::vector<double>& ratios,
                                       size_t rounds) {
    std::vector<std::vector<double>> times(ratios.size());
    std::vector<double> slow(ratios.size(), 0);
    double drift = 0;
    for (size_t round = 0; round < rounds; ++round) {
      drift += 0.05 * normal_(random_);
      for (size_t arm = 0; arm < ratios.size(); ++arm) {
        slow[arm] = correlation_ * slow[arm] +
                    std::sqrt(1 - correlation_ * correlation_) * 0.05 *
                        normal_(random_);
        const double pause = uniform_(random_) < 0.05 ? 2 : 0;
        times[arm].push_back(1e-3 * ratios[arm] *
                             std::exp(drift + slow[arm] + pause));
      }
    }
    return times;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double correlation_;
};

PairedEstimate Compare(const std::vector<std::vector<double>>& times,
                       size_t arm) {
  return EstimateRatio({PairedTimes{times[arm], times[0]}});
}

TEST_CASE("intervals of independent rounds hold the truth", "[bench]") {
  int sign = 0, bootstrap = 0;
  constexpr int kRuns = 300;
  for (int run = 0; run < kRuns; ++run) {
    Machine machine(static_cast<uint64_t>(run), 0);
    const PairedEstimate estimate = Compare(machine.Run({1, 0.9}, 41), 1);
    sign += estimate.sign.Contains(0.9);
    bootstrap += estimate.bootstrap.Contains(0.9);
  }
  // 95 % and what 300 runs may be below it.
  CHECK(sign >= 0.92 * kRuns);
  CHECK(bootstrap >= 0.91 * kRuns);
}

TEST_CASE("the widest interval holds the truth in noise that lasts",
          "[bench]") {
  int held = 0, sign = 0;
  constexpr int kRuns = 300;
  for (int run = 0; run < kRuns; ++run) {
    Machine machine(1000 + static_cast<uint64_t>(run), 0.5);
    const PairedEstimate estimate = Compare(machine.Run({1, 0.8}, 61), 1);
    held += estimate.Widest().Contains(0.8);
    sign += estimate.sign.Contains(0.8);
  }
  CHECK(held >= 0.88 * kRuns);
  CHECK(held > sign);
}

TEST_CASE("equal arms are called faster or slower in at most 5 % of runs",
          "[bench]") {
  for (const double correlation : {0.0, 0.5, 0.8}) {
    int alarms = 0;
    constexpr int kRuns = 200;
    for (int run = 0; run < kRuns; ++run) {
      Machine machine(2000 + static_cast<uint64_t>(run), correlation);
      const auto times = machine.Run({1, 1, 1}, 41);
      const Verdict verdict = Judge(Compare(times, 2), Compare(times, 1));
      alarms += verdict == Verdict::kFaster || verdict == Verdict::kSlower;
    }
    INFO("correlation " << correlation);
    CHECK(alarms <= 0.05 * kRuns);
  }
}

TEST_CASE("a real difference is seen, and its direction", "[bench]") {
  int faster = 0, slower = 0;
  constexpr int kRuns = 100;
  for (int run = 0; run < kRuns; ++run) {
    Machine machine(3000 + static_cast<uint64_t>(run), 0.3);
    const auto times = machine.Run({1, 1, 0.85, 1.2}, 41);
    faster += Judge(Compare(times, 2), Compare(times, 1)) == Verdict::kFaster;
    slower += Judge(Compare(times, 3), Compare(times, 1)) == Verdict::kSlower;
  }
  CHECK(faster >= 0.9 * kRuns);
  CHECK(slower >= 0.9 * kRuns);
}

TEST_CASE("10 % are seen in nine of ten runs, in independent noise of 5 %",
          "[bench]") {
  int of_10 = 0;
  constexpr int kRuns = 100;
  for (int run = 0; run < kRuns; ++run) {
    Machine machine(4000 + static_cast<uint64_t>(run), 0);
    const auto times = machine.Run({1, 1, 1.1}, 41);
    of_10 += Judge(Compare(times, 2), Compare(times, 1)) == Verdict::kSlower;
  }
  CHECK(of_10 >= 0.9 * kRuns);
}

TEST_CASE("a verdict needs rounds, and a difference larger than the noise",
          "[bench]") {
  const auto estimate = [](double ratio, double low, double high) {
    return PairedEstimate{50, ratio, {low, high}, {low, high}};
  };
  const PairedEstimate quiet = estimate(1, 0.99, 1.01);
  const PairedEstimate noisy = estimate(1.1, 0.9, 1.3);
  CHECK(Judge(estimate(0.8, 0.75, 0.85), quiet) == Verdict::kFaster);
  // Noise of 30 %: ratios from 1 / 1.3 to 1.3 are within it, whatever the ends
  // of their intervals.
  CHECK(Judge(estimate(0.8, 0.75, 0.85), noisy) == Verdict::kNothingMeasurable);
  CHECK(Judge(estimate(0.8, 0.5, 0.99), noisy) == Verdict::kNothingMeasurable);
  CHECK(Judge(estimate(0.76, 0.75, 0.85), noisy) == Verdict::kFaster);
  CHECK(Judge(estimate(1.2, 1.1, 1.5), noisy) == Verdict::kNothingMeasurable);
  CHECK(Judge(estimate(1.31, 1.1, 1.4), noisy) == Verdict::kSlower);
  CHECK(Judge(estimate(1.2, 1.1, 1.3), quiet) == Verdict::kSlower);
  CHECK(Judge(estimate(0.9, 0.7, 1.1), quiet) == Verdict::kNothingMeasurable);
  CHECK(Judge(estimate(0.99, 0.985, 0.995), quiet) == Verdict::kNoDifference);
  PairedEstimate few = estimate(0.5, 0.4, 0.6);
  few.rounds = 5;
  CHECK(Judge(few, quiet) == Verdict::kTooFewRounds);
  CHECK(runtime::NoiseFloor(estimate(1, 0.8, 1.1)) == Approx(0.25));
}

TEST_CASE("the sign test's interval has the ranks of the binomial", "[bench]") {
  // For 20 values the 6th and the 15th: 2 P(B(20, 1/2) < 6) = 0.041.
  std::vector<double> arm, base(20, 1.0);
  for (int i = 0; i < 20; ++i) arm.push_back(1 + i * 7 % 20);
  const PairedEstimate estimate = EstimateRatio({{arm, base}});
  CHECK(estimate.sign.low == Approx(6));
  CHECK(estimate.sign.high == Approx(15));
  CHECK(estimate.ratio == Approx(std::sqrt(110.0)));
}

TEST_CASE("few rounds, none, and a clock that stood still", "[bench]") {
  const std::vector<double> arm = {2, 3, 4}, base = {1, 1, 1}, zero = {0, 0, 0};
  const PairedEstimate estimate = EstimateRatio({{arm, base}});
  CHECK(estimate.rounds == 3);
  CHECK(estimate.sign.low == Approx(2));
  CHECK(estimate.bootstrap.high == Approx(4));
  CHECK(EstimateRatio({}).rounds == 0);
  CHECK(EstimateRatio({{arm, zero}}).rounds == 0);
  CHECK(runtime::Median({}) == 0);
}

TEST_CASE("what differs from process to process widens the interval",
          "[bench]") {
  // Each process has a ratio of its own around 0.9, and little noise inside.
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  int held = 0;
  constexpr int kRuns = 100;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<std::vector<double>> arms(10);
    for (std::vector<double>& arm : arms) {
      const double own = 0.9 * std::exp(0.05 * normal(random));
      for (int i = 0; i < 15; ++i)
        arm.push_back(own * std::exp(0.005 * normal(random)));
    }
    const std::vector<double> base(15, 1.0);
    std::vector<PairedTimes> processes;
    for (const auto& arm : arms) processes.push_back({arm, base});
    held += EstimateRatio(processes).Widest().Contains(0.9);
  }
  CHECK(held >= 0.9 * kRuns);
}

}  // namespace
}  // namespace addnorm::tests
