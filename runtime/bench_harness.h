// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Times pieces of work against each other, so that what else the machine does
// hits all of them alike: all in one process, one epoch of each in each round,
// in an order that is drawn for each round.
//
// An epoch is as many calls as make the clock's grain small, the same number
// for all arms of a round. It only collects times; paired_statistics.h says
// what they mean. One arm should be the base once more (A/A): what that shows
// is the noise.
//
//   std::vector<BenchArm> arms = {{"unfused", run}, {"again", run}, …};
//   Timings timings = Interleave(arms, {.seconds = 2});
//   EstimateRatio({{timings.seconds[2], timings.seconds[0]}});
#ifndef ADDNORM_RUNTIME_BENCH_HARNESS_H_
#define ADDNORM_RUNTIME_BENCH_HARNESS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace addnorm::runtime {

struct BenchArm {
  std::string name;
  std::function<void()> run;
  // Before each epoch, not timed.
  std::function<void()> before_epoch = nullptr;
  // Before each call, not timed. With it, each call of any arm is timed by
  // itself, since no epoch can be timed as a whole, and an epoch has the
  // median.
  std::function<void()> before_call = nullptr;
  // After each epoch that counts, with the number of its calls: for an arm that
  // measures more than its time.
  std::function<void(int64_t calls)> after_epoch = nullptr;
};

struct BenchOptions {
  double seconds = 1;  // for all rounds together, warm-up included
  // More rounds than these are not made; fewer only if the time is over and the
  // least are done.
  size_t least_rounds = 1;
  size_t most_rounds = 10'000;
  double epoch_seconds = 1e-3;
  size_t warm_up_rounds = 2;
  uint64_t seed = 0;
  // Seconds from any point in time on: what epochs are timed with, and what
  // `seconds` is kept by. SteadySeconds if empty.
  std::function<double()> now = nullptr;
  std::function<double()> wall = nullptr;  // `now` if empty
  // Sees the share of the time that is over, and can stop the rounds.
  std::function<bool(double share)> on_progress = nullptr;
};

struct Timings {
  // Of one call, by arm and round.
  std::vector<std::vector<double>> seconds;
  int64_t calls = 1;     // in an epoch
  double elapsed = 0;    // of everything
  bool stopped = false;  // by on_progress

  size_t rounds() const { return seconds.empty() ? 0 : seconds[0].size(); }
};

double SteadySeconds();
// Of this process on any processor: what other programs do to the time of one
// thread is not in it. Reading it takes about as long as a call does.
double ProcessorSeconds();

Timings Interleave(const std::vector<BenchArm>& arms,
                   const BenchOptions& options);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_BENCH_HARNESS_H_
