// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Threads that share out index ranges, always in the same contiguous parts.
//
// Not a scheduler: one loop runs at a time, and a loop inside a loop runs on
// the thread that started it. No result may depend on where the parts are cut:
// a part is whole rows or single elements, never half a sum. Each part runs in
// a FloatEnvironment of its own. Threads stay awake for some microseconds after
// a loop, since the next one often follows.
//
//   threads.ParallelFor(rows, /*grain=*/8, [&](int64_t begin, int64_t end) {
//     for (int64_t row = begin; row < end; ++row) Normalise(row);
//   });
#ifndef ADDNORM_RUNTIME_THREAD_POOL_H_
#define ADDNORM_RUNTIME_THREAD_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace addnorm::runtime {

class ThreadPool {
 public:
  using Part = absl::FunctionRef<void(int64_t begin, int64_t end)>;
  using FalliblePart =
      absl::FunctionRef<absl::Status(int64_t begin, int64_t end)>;

  // threads >= 1, the calling one included.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int thread_count() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls part on [0, count) cut into at most thread_count() ranges of at least
  // grain indices (one range if count is less), and waits for all of them.
  void ParallelFor(int64_t count, int64_t grain, Part part);
  // The same with parts that can fail: the first error that one of them had.
  // The other parts run to their ends.
  absl::Status TryParallelFor(int64_t count, int64_t grain, FalliblePart part);

 private:
  void Work(int index);
  void RunPart(int index);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable started_, finished_;
  // Of the loop that runs. Written with mutex_ held; what is atomic is also
  // read without it, by threads that are about to sleep.
  const Part* part_ = nullptr;
  int64_t count_ = 0;
  int parts_ = 0;
  std::atomic<int> pending_ = 0;
  std::atomic<uint64_t> generation_ = 0;
  std::atomic<bool> stopping_ = false;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_THREAD_POOL_H_
