// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/paired_statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace addnorm::runtime {
namespace {

constexpr double kLevel = 0.95;
constexpr size_t kResamples = 500;

using Logs = std::vector<double>;  // log-ratios of one process

Logs LogRatios(const PairedTimes& times) {
  Logs logs;
  const size_t rounds = std::min(times.arm.size(), times.base.size());
  for (size_t i = 0; i < rounds; ++i) {
    // A clock that did not move says nothing.
    if (times.arm[i] > 0 && times.base[i] > 0)
      logs.push_back(std::log(times.arm[i] / times.base[i]));
  }
  return logs;
}

// How alike neighbouring rounds are, from 0 to 0.95: the correlation that a
// normal process would have whose values are as often on the same side of the
// median as these. By sides, since one interrupted epoch would hide it else.
double Correlation(const Logs& logs) {
  const auto n = static_cast<double>(logs.size());
  if (logs.size() < kLeastRounds) return 0;
  const double median = Median(logs);
  double same = 0;
  for (size_t i = 1; i < logs.size(); ++i)
    same += (logs[i] > median) == (logs[i - 1] > median) ? 1 : -1;
  double sides = same / (n - 1);
  if (sides < 1 / std::sqrt(n)) return 0;
  sides += (1 + 3 * sides) / n;  // so much too low on the average
  return std::min(std::sin(std::min(sides, 1.0) * std::numbers::pi / 2), 0.95);
}

double MeanCorrelation(const std::vector<Logs>& processes) {
  double sum = 0;
  for (const Logs& logs : processes) sum += Correlation(logs);
  return sum / static_cast<double>(processes.size());
}

// How many of the smallest, and of the largest, of n values an interval for the
// median may leave out: the largest k with 2 P(Binomial(n, 1/2) < k) <= 5 %.
size_t LeftOut(size_t n) {
  double probability = std::exp2(-static_cast<double>(n));
  // Underflows for thousands of rounds: there the normal approximation is good.
  if (probability < 1e-300) {
    const auto count = static_cast<double>(n);
    return static_cast<size_t>(count / 2 - 0.98 * std::sqrt(count)) - 1;
  }
  double below = 0;
  size_t k = 0;
  while (2 * (below + probability) <= 1 - kLevel && k < n / 2) {
    below += probability;
    ++k;
    probability *= static_cast<double>(n - k + 1) / static_cast<double>(k);
  }
  return k;
}

// Values that are alike say as much as fewer independent ones: the ranks are
// spread accordingly.
Interval SignInterval(Logs values, double correlation) {
  std::sort(values.begin(), values.end());
  const auto middle = static_cast<double>(values.size()) / 2;
  const auto left_out = static_cast<double>(LeftOut(values.size()));
  const double spread =
      (middle - left_out) * std::sqrt((1 + correlation) / (1 - correlation));
  const auto low = static_cast<size_t>(std::max(middle - spread - 1, 0.0));
  return {std::exp(values[low]), std::exp(values[values.size() - 1 - low])};
}

// About n^(1/3), the rate at which blocks should grow; longer where neighbours
// are alike.
size_t BlockLength(const Logs& logs) {
  const auto n = static_cast<double>(logs.size());
  const double correlation = Correlation(logs);
  const double decay = (1 + correlation) / (1 - correlation);
  const double length = std::cbrt(n) * std::cbrt(decay * decay);
  return static_cast<size_t>(std::clamp(length, 1.0, std::max(1.0, n / 4)));
}

class Bootstrap {
 public:
  Bootstrap(const std::vector<Logs>& processes, uint64_t seed)
      : processes_(processes), random_(seed) {
    for (const Logs& logs : processes)
      block_lengths_.push_back(BlockLength(logs));
  }

  Interval Percentiles() {
    std::vector<double> medians;
    for (size_t i = 0; i < kResamples; ++i) medians.push_back(Resample());
    std::sort(medians.begin(), medians.end());
    const auto cut = static_cast<size_t>(kResamples * (1 - kLevel) / 2);
    return {std::exp(medians[cut]), std::exp(medians[kResamples - 1 - cut])};
  }

 private:
  size_t Draw(size_t below) { return static_cast<size_t>(random_() % below); }

  // One drawn set of processes, of each a drawn set of blocks.
  double Resample() {
    Logs drawn;
    for (size_t i = 0; i < processes_.size(); ++i)
      DrawRounds(processes_.size() == 1 ? 0 : Draw(processes_.size()), drawn);
    return Median(std::move(drawn));
  }

  // Blocks go round from the end to the beginning, so that no round is drawn
  // less often than others.
  void DrawRounds(size_t process, Logs& drawn) {
    const Logs& logs = processes_[process];
    const size_t end = drawn.size() + logs.size();
    while (drawn.size() < end) {
      const size_t start = Draw(logs.size());
      for (size_t i = 0; i < block_lengths_[process] && drawn.size() < end; ++i)
        drawn.push_back(logs[(start + i) % logs.size()]);
    }
  }

  const std::vector<Logs>& processes_;
  std::vector<size_t> block_lengths_;
  std::mt19937_64 random_;
};

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Interval PairedEstimate::Widest() const {
  return {std::min(sign.low, bootstrap.low),
          std::max(sign.high, bootstrap.high)};
}

PairedEstimate EstimateRatio(const std::vector<PairedTimes>& processes,
                             uint64_t seed) {
  std::vector<Logs> logs;
  Logs all, medians;
  for (const PairedTimes& times : processes) {
    Logs of_process = LogRatios(times);
    if (of_process.empty()) continue;
    all.insert(all.end(), of_process.begin(), of_process.end());
    medians.push_back(Median(of_process));
    logs.push_back(std::move(of_process));
  }
  PairedEstimate estimate;
  estimate.rounds = all.size();
  if (all.empty()) return estimate;
  estimate.ratio = std::exp(Median(all));
  estimate.sign = medians.size() >= kLeastRounds
                      ? SignInterval(medians, 0)
                      : SignInterval(all, MeanCorrelation(logs));
  estimate.bootstrap = all.size() < kLeastRounds
                           ? estimate.sign
                           : Bootstrap(logs, seed).Percentiles();
  return estimate;
}

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
      return "faster";
    case Verdict::kSlower:
      return "slower";
    case Verdict::kNoDifference:
      return "no difference";
    case Verdict::kNothingMeasurable:
      return "not measurable";
    case Verdict::kOfNoUse:
      return "of no use";
    case Verdict::kTooFewRounds:
      break;
  }
  return "too few rounds";
}

double NoiseFloor(const PairedEstimate& floor) {
  const Interval widest = floor.Widest();
  return std::max(widest.high, 1 / widest.low) - 1;
}

Verdict Judge(const PairedEstimate& estimate, const PairedEstimate& floor) {
  if (estimate.rounds < kLeastRounds || floor.rounds < kLeastRounds)
    return Verdict::kTooFewRounds;
  const Interval interval = estimate.Widest();
  if (interval.low >= 1 - kEquivalence && interval.high <= 1 + kEquivalence)
    return Verdict::kNoDifference;
  const double noise = NoiseFloor(floor);
  if (interval.high < 1 && estimate.ratio < 1 / (1 + noise))
    return Verdict::kFaster;
  if (interval.low > 1 && estimate.ratio > 1 + noise) return Verdict::kSlower;
  return Verdict::kNothingMeasurable;
}

}  // namespace addnorm::runtime
