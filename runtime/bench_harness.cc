// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/bench_harness.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

#include "runtime/paired_statistics.h"

namespace addnorm::runtime {
namespace {

// An epoch of more calls would only be a clock that stands still.
constexpr int64_t kMostCalls = 1'000'000;
// Warm-up and calibration may take that share of the time.
constexpr double kWarmUpShare = 0.25;

class Bench {
 public:
  Bench(const std::vector<BenchArm>& arms, const BenchOptions& options)
      : arms_(arms), options_(options), random_(options.seed) {
    if (!options_.wall) options_.wall = options_.now;
    if (!options_.now) options_.now = SteadySeconds;
    if (!options_.wall) options_.wall = SteadySeconds;
    timings_.seconds.resize(arms.size());
    order_.resize(arms.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    is_split_ = std::any_of(arms.begin(), arms.end(), [](const BenchArm& arm) {
      return arm.before_call != nullptr;
    });
    start_ = options_.wall();
  }

  Timings Run() {
    Calibrate();
    WarmUp();
    while (WantsRound()) {
      DrawOrder();
      for (const size_t arm : order_) {
        const double seconds = Epoch(arms_[arm]);
        timings_.seconds[arm].push_back(seconds /
                                        static_cast<double>(timings_.calls));
        if (arms_[arm].after_epoch) arms_[arm].after_epoch(timings_.calls);
      }
    }
    timings_.elapsed = Elapsed();
    return std::move(timings_);
  }

 private:
  double Elapsed() const { return options_.wall() - start_; }

  double Epoch(const BenchArm& arm) {
    if (arm.before_epoch) arm.before_epoch();
    return is_split_ ? CallByCall(arm) : CallAfterCall(arm);
  }

  double CallAfterCall(const BenchArm& arm) {
    const double start = options_.now();
    for (int64_t i = 0; i < timings_.calls; ++i) arm.run();
    return options_.now() - start;
  }

  // As long as the call in the middle: one that was interrupted says nothing.
  double CallByCall(const BenchArm& arm) {
    std::vector<double> seconds;
    for (int64_t i = 0; i < timings_.calls; ++i) {
      if (arm.before_call) arm.before_call();
      const double start = options_.now();
      arm.run();
      seconds.push_back(options_.now() - start);
    }
    return Median(std::move(seconds)) * static_cast<double>(timings_.calls);
  }

  // Calls are doubled until the arm in the middle takes long enough, so that
  // neither a very fast nor a very slow one decides.
  void Calibrate() {
    while (timings_.calls < kMostCalls) {
      std::vector<double> epochs;
      for (const BenchArm& arm : arms_) epochs.push_back(Epoch(arm));
      std::nth_element(
          epochs.begin(),
          epochs.begin() + static_cast<std::ptrdiff_t>(epochs.size() / 2),
          epochs.end());
      const double middle = epochs[epochs.size() / 2];
      if (middle >= options_.epoch_seconds ||
          Elapsed() > options_.seconds * kWarmUpShare)
        return;
      // At most eightfold: the first calls are slower than those that count.
      const double factor =
          std::clamp(options_.epoch_seconds / std::max(middle, 1e-9), 2.0, 8.0);
      timings_.calls = std::min(
          kMostCalls, static_cast<int64_t>(std::ceil(
                          static_cast<double>(timings_.calls) * factor)));
    }
  }

  void WarmUp() {
    for (size_t i = 0; i < options_.warm_up_rounds; ++i) {
      if (Elapsed() > options_.seconds * kWarmUpShare) return;
      for (const BenchArm& arm : arms_) Epoch(arm);
    }
  }

  bool WantsRound() {
    const double share = Elapsed() / std::max(options_.seconds, 1e-9);
    if (options_.on_progress && !options_.on_progress(std::min(share, 1.0)))
      timings_.stopped = true;
    if (timings_.stopped) return false;
    const size_t rounds = timings_.rounds();
    if (rounds < std::max<size_t>(options_.least_rounds, 1)) return true;
    return rounds < options_.most_rounds && share < 1;
  }

  // Its own shuffle: std::shuffle's order is not the same everywhere.
  void DrawOrder() {
    for (size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[static_cast<size_t>(random_() % i)]);
  }

  const std::vector<BenchArm>& arms_;
  BenchOptions options_;
  std::mt19937_64 random_;
  std::vector<size_t> order_;
  bool is_split_ = false;
  double start_ = 0;
  Timings timings_;
};

}  // namespace

double SteadySeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double ProcessorSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

Timings Interleave(const std::vector<BenchArm>& arms,
                   const BenchOptions& options) {
  return arms.empty() ? Timings{} : Bench(arms, options).Run();
}

}  // namespace addnorm::runtime
