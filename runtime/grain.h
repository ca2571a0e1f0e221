// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// How much work is worth a thread, for ThreadPool::ParallelFor.
//
// For loops in which memory takes the time. It bears on no result.
//
//   threads.ParallelFor(rows, LineGrain(row_length), part);
#ifndef ADDNORM_RUNTIME_GRAIN_H_
#define ADDNORM_RUNTIME_GRAIN_H_

#include <cstdint>

namespace addnorm::runtime {

// Elements.
inline constexpr int64_t kMemoryGrain = 32 * 1024;

// Lines of so many elements.
inline int64_t LineGrain(int64_t length) {
  return length >= kMemoryGrain ? 1 : kMemoryGrain / (length + 1) + 1;
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_GRAIN_H_
