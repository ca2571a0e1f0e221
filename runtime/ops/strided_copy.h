// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies elements between two layouts, each given by strides: what Transpose,
// Slice, Expand, Tile, Concat, Split and Pad have in common.
//
// It moves bytes and knows no element types. Elements must not overlap on the
// writing side, and the sides must not overlap each other. It finds contiguous
// runs and transposed planes itself, so axes may come in any order.
//
//   // y[j][i] = x[i][j] for floats, x being 2×3
//   Copy(threads, {x, y, /*element=*/4, {{3, 4, 8}, {2, 12, 4}}});
#ifndef ADDNORM_RUNTIME_OPS_STRIDED_COPY_H_
#define ADDNORM_RUNTIME_OPS_STRIDED_COPY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/tensor.h"
#include "runtime/thread_pool.h"

namespace addnorm::runtime {

// A loop of a copy: how often, and how many bytes a step is on each side. A
// step of 0 in `from` repeats elements; steps may be negative.
struct CopyAxis {
  int64_t count = 0;
  int64_t from = 0;
  int64_t to = 0;
};

struct StridedCopy {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  int64_t element = 1;  // bytes
  std::vector<CopyAxis> axes;
};

void Copy(ThreadPool& threads, StridedCopy copy);

// Writes the element at `value` count times.
void Fill(ThreadPool& threads, std::byte* to, int64_t count,
          const std::byte* value, int64_t element);

// Bytes from one index of each axis to the next, dense and row-major.
Dims ByteStrides(const Dims& dims, int64_t element);

// Indices of a parallel loop that are worth a thread, if each moves so many
// bytes.
int64_t GrainOfBytes(int64_t bytes);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_STRIDED_COPY_H_
