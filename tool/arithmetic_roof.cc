// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/arithmetic_roof.h"

#include "runtime/bench_harness.h"
#include "runtime/kernels/arithmetic_probe.h"
#include "runtime/paired_statistics.h"
#include "runtime/thread_pool.h"

namespace addnorm::tool {
namespace {

// Half a millisecond, about: long for a clock, short for a scheduler.
constexpr int64_t kRounds = 50'000;
constexpr int kEpochs = 31;

double OperationsPerSecond(runtime::ThreadPool& threads, bool is_double) {
  // As for the pair: what others do to one thread is not its speed.
  const auto now = threads.thread_count() == 1 ? runtime::ProcessorSeconds
                                               : runtime::SteadySeconds;
  std::vector<double> speeds;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    std::vector<double> operations(threads.thread_count());
    const double start = now();
    threads.ParallelFor(threads.thread_count(), 1, [&](int64_t begin, int64_t) {
      operations[static_cast<size_t>(begin)] =
          runtime::MultiplyAndAdd(is_double, kRounds);
    });
    const double seconds = now() - start;
    double all = 0;
    for (const double some : operations) all += some;
    if (seconds > 0) speeds.push_back(all / seconds);
  }
  return runtime::Median(std::move(speeds));
}

}  // namespace

nlohmann::ordered_json MeasureArithmetic(const std::vector<int>& threads) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const int count : threads) {
    runtime::ThreadPool pool(count);
    for (const bool is_double : {false, true}) {
      rows.push_back(
          {{"threads", count},
           {"type", is_double ? "f64" : "f32"},
           {"operations_per_second", OperationsPerSecond(pool, is_double)}});
    }
  }
  return rows;
}

}  // namespace addnorm::tool
