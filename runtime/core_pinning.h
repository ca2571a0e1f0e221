// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Threads that keep to one core each while something is measured: a thread that
// moves finds other caches.
//
// Not for runs that are not measured: there the system knows better. While it
// lives, the thread that made it and the workers of pools that are started
// (thread_pool.h) are pinned; it gives the thread back its cores at its end, so
// that processes started later have them all.
//
//   const CorePinning pinning(threads);
//   fmt::print("on cores {}", fmt::join(pinning.cores(), ", "));
#ifndef ADDNORM_RUNTIME_CORE_PINNING_H_
#define ADDNORM_RUNTIME_CORE_PINNING_H_

#include <sched.h>

#include <vector>

namespace addnorm::runtime {

// What the process may use: one thread of each core first, beginning with where
// the caller runs, then the other threads of the same cores.
std::vector<int> AllowedCores();

class CorePinning {
 public:
  // Does nothing for no threads, if the process may not use as many cores, or
  // if the system refuses. Only one may live at a time.
  explicit CorePinning(int threads);
  ~CorePinning();
  CorePinning(const CorePinning&) = delete;
  CorePinning& operator=(const CorePinning&) = delete;

  // By thread, the one that made it first; empty if nothing is pinned.
  const std::vector<int>& cores() const { return cores_; }
  // Of the first threads.
  std::vector<int> cores(int threads) const;

  // For a worker that starts: pins it to its core, if there is one.
  static void PinWorker(int index);

 private:
  std::vector<int> cores_;
  cpu_set_t before_;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_CORE_PINNING_H_
