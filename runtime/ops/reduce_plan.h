// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Which elements of a tensor a reduction puts together, as few nested loops as
// its axes allow: neighbouring axes of one kind are one.
//
// It knows no operation (reduce_loop.h) and no node (reduction.cc).
//
//   // [2,3,4] over axis 1: 2 kept outside, 3 reduced, runs of 4 kept
//   ReducePlan plan = MakeReducePlan({2, 3, 4}, {false, true, false});
#ifndef ADDNORM_RUNTIME_OPS_REDUCE_PLAN_H_
#define ADDNORM_RUNTIME_OPS_REDUCE_PLAN_H_

#include <cstdint>
#include <vector>

#include "runtime/tensor.h"

namespace addnorm::runtime {

// Nested loops, the last one innermost, as one index.
struct StridedLoops {
  struct Loop {
    int64_t size = 1, stride = 1;
  };
  std::vector<Loop> loops;
  int64_t count = 1;

  int64_t Offset(int64_t index) const {
    int64_t offset = 0;
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      offset += index % loop->size * loop->stride;
      index /= loop->size;
    }
    return offset;
  }
};

struct ReducePlan {
  StridedLoops kept, reduced;
  // The last axes, contiguous in memory.
  int64_t run = 1;
  bool run_is_reduced = false;
  int64_t outputs = 1;        // elements of the result
  int64_t reduced_count = 1;  // elements that make one of them
};

// Calls f(offset, output, step) for every run: its element i, at offset + i,
// belongs to result output + i * step.
template <typename F>
void ForEachRun(const ReducePlan& plan, F f) {
  for (int64_t kept = 0; kept < plan.kept.count; ++kept) {
    for (int64_t r = 0; r < plan.reduced.count; ++r) {
      f(plan.kept.Offset(kept) + plan.reduced.Offset(r),
        plan.run_is_reduced ? kept : kept * plan.run,
        plan.run_is_reduced ? 0 : 1);
    }
  }
}

ReducePlan MakeReducePlan(const Dims& dims, const std::vector<bool>& reduced);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_REDUCE_PLAN_H_
