// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "hwy/cache_control.h"
#include "runtime/core_pinning.h"
#include "runtime/float_environment.h"

namespace addnorm::runtime {
namespace {

// True while this thread runs a part: then a loop may not wait for the others.
thread_local bool in_part = false;

// Looks for what is awaited again and again, for about as long as waking a
// thread that sleeps takes (50 us on a virtual machine): from loop to loop of a
// model nobody has to be woken, and a machine with other work loses no more
// than that.
template <typename Done>
void Spin(Done done) {
  constexpr std::chrono::microseconds kLongest(50);
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (!done() && std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 16 && !done(); ++i) hwy::Pause();
  }
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  try {
    for (int index = 1; index < threads; ++index)
      workers_.emplace_back([this, index] {
        CorePinning::PinWorker(index);
        Work(index);
      });
  } catch (const std::exception&) {
    // The system gives no more threads, or no memory for their stacks. What
    // there are suffices: no result depends on their number.
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  started_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::ParallelFor(int64_t count, int64_t grain, Part part) {
  if (count <= 0) return;
  const int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1),
                                            1, thread_count());
  if (parts == 1 || in_part) {
    const FloatEnvironment environment;
    part(0, count);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    part_ = &part;
    count_ = count;
    parts_ = static_cast<int>(parts);
    pending_ = parts_ - 1;
    ++generation_;
  }
  started_.notify_all();
  RunPart(0);
  Spin([this] { return pending_ == 0; });
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return pending_ == 0; });
}

absl::Status ThreadPool::TryParallelFor(int64_t count, int64_t grain,
                                        FalliblePart part) {
  std::mutex mutex;
  absl::Status first;
  ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    const absl::Status status = part(begin, end);
    if (status.ok()) return;
    const std::lock_guard lock(mutex);
    first.Update(status);
  });
  return first;
}

void ThreadPool::RunPart(int index) {
  const FloatEnvironment environment;
  in_part = true;
  // The same cuts for the same count and number of parts.
  const int64_t size = count_ / parts_, rest = count_ % parts_;
  const int64_t begin = index * size + std::min<int64_t>(index, rest);
  (*part_)(begin, begin + size + (index < rest ? 1 : 0));
  in_part = false;
}

void ThreadPool::Work(int index) {
  uint64_t seen = 0;
  const auto called = [&] { return stopping_ || generation_ != seen; };
  while (true) {
    Spin(called);
    std::unique_lock lock(mutex_);
    started_.wait(lock, called);
    if (stopping_) return;
    seen = generation_;
    if (index >= parts_) continue;
    lock.unlock();
    RunPart(index);
    lock.lock();
    if (--pending_ == 0) finished_.notify_one();
  }
}

}  // namespace addnorm::runtime
