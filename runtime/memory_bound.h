// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// How many bytes the tensors of this process may hold: what the machine had to
// spare when the first was made, or its control group if that has less.
//
// A small model can ask for any amount. Linux promises memory that is not
// there, and kills a process, not always the one that asked, when it is used:
// so what cannot be had is refused before. It is no allocator, knows nothing of
// what other processes take later, and counts all runs together; what one run
// holds is MemoryMeter's (tensor.h).
//
//   MemoryBound& bound = MemoryBound::OfProcess();
//   RETURN_IF_ERROR(bound.Take(bytes));  // later bound.Give(bytes)
#ifndef ADDNORM_RUNTIME_MEMORY_BOUND_H_
#define ADDNORM_RUNTIME_MEMORY_BOUND_H_

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "absl/status/status.h"

namespace addnorm::runtime {

class MemoryBound {
 public:
  explicit MemoryBound(uint64_t limit) : limit_(limit) {}
  // The one that tensors ask: 15/16 of what is available, as tensors are not
  // all that a run needs.
  static MemoryBound& OfProcess();

  // kResourceExhausted with both numbers if so much is not left.
  absl::Status Take(uint64_t bytes);
  // Only asks.
  absl::Status CheckRoom(uint64_t bytes) const;
  // For what is so small that nobody asks; more than the limit is possible.
  void TakeUnasked(uint64_t bytes) { held_ += bytes; }
  void Give(uint64_t bytes) { held_ -= bytes; }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> held_ = 0;
};

// Bytes that can be had without taking any from others: of the machine (memory
// and swap), and of each control group that the process is in. No limit where
// the system does not say. `root` is another one than "/" in tests.
uint64_t AvailableMemory(const std::filesystem::path& root = "/");

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_MEMORY_BOUND_H_
