// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// ThreadPool: parts, errors, and what handing work over costs.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "runtime/core_pinning.h"
#include "runtime/thread_pool.h"
#include "tests/support/catch.h"

namespace addnorm::tests {
namespace {

using runtime::ThreadPool;

int64_t VoluntarySwitches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

TEST_CASE("each index is in one part, whatever the numbers of threads") {
  for (const int count : {1, 2, 3, 7}) {
    ThreadPool threads(count);
    for (const int64_t size : {1, 2, 6, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(size));
      threads.ParallelFor(size, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const auto& times : seen) CHECK(times == 1);
    }
  }
}

TEST_CASE("parts that fail do not keep others from their end") {
  ThreadPool threads(4);
  std::atomic<int> done = 0;
  const absl::Status status =
      threads.TryParallelFor(4, 1, [&](int64_t begin, int64_t) {
        ++done;
        return begin == 2 ? absl::InvalidArgumentError("the third")
                          : absl::OkStatus();
      });
  CHECK(status.message() == "the third");
  CHECK(done == 4);
  CHECK(threads.TryParallelFor(4, 1, [](int64_t, int64_t) {
    return absl::OkStatus();
  }) == absl::OkStatus());
}

// Else a loop of some microseconds takes twenty times as long.
TEST_CASE("loops that follow one another wake nobody") {
  if (std::thread::hardware_concurrency() < 2) return;
  constexpr int kLoops = 20;
  const runtime::CorePinning pinning(2);
  ThreadPool threads(2);
  int64_t fewest = 10 * kLoops;
  // One undisturbed try suffices: other programs may take the cores.
  for (int attempt = 0; attempt < 1000 && fewest > kLoops / 2; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(attempt % 10));
    const int64_t before = VoluntarySwitches();
    for (int i = 0; i < kLoops; ++i)
      threads.ParallelFor(2, 1, [](int64_t, int64_t) {});
    fewest = std::min(fewest, VoluntarySwitches() - before);
  }
  CHECK(fewest <= kLoops / 2);
}

}  // namespace
}  // namespace addnorm::tests
