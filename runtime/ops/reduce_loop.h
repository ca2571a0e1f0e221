// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The loops of every reduction, for a Reducer that says what happens to an
// element and to two partial results.
//
// Order, the same for any number of threads: a reduced last axis is folded as
// row_sum.h says; partial results of further runs are added to the first one in
// order of their index. Where the last axis is kept, each of its elements is
// folded by itself, in order of the index, starting from the identity.
//
//   struct Sum { static A Identity(); A Load(A x, int64_t output) const;
//                static A Fold(A a, A b); static A Finish(A a, int64_t n); };
//   ReduceAll<float>(plan, Sum(), x, y, threads);
#ifndef ADDNORM_RUNTIME_OPS_REDUCE_LOOP_H_
#define ADDNORM_RUNTIME_OPS_REDUCE_LOOP_H_

#include <algorithm>
#include <cstdint>

#include "runtime/element_types.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/reduce_plan.h"
#include "runtime/row_sum.h"
#include "runtime/thread_pool.h"

namespace addnorm::runtime {

// A run that is reduced: by the reducer's row kernel, or element by element.
template <typename T, typename Reducer>
ComputeType<T> FoldRun(const Reducer& reducer, const T* x, int64_t n,
                       int64_t output) {
  using A = ComputeType<T>;
  constexpr bool kHasKernel = std::is_floating_point_v<A> && requires {
    Reducer::Row(x, static_cast<size_t>(n));
  };
  if constexpr (kHasKernel) {
    return Reducer::Row(x, static_cast<size_t>(n));
  } else {
    return FoldRow<A>(
        n, Reducer::Identity(), [](A a, A b) { return Reducer::Fold(a, b); },
        [&](int64_t i) { return reducer.Load(Widen(x[i]), output); });
  }
}

// One result from runs that are reduced themselves.
template <typename T, typename Reducer>
ComputeType<T> ReduceRuns(const ReducePlan& plan, const Reducer& reducer,
                          const T* x, int64_t output) {
  using A = ComputeType<T>;
  A result = Reducer::Identity();
  for (int64_t r = 0; r < plan.reduced.count; ++r) {
    const A part =
        FoldRun(reducer, x + plan.reduced.Offset(r), plan.run, output);
    result = r == 0 ? part : Reducer::Fold(result, part);
  }
  return result;
}

constexpr int64_t kColumnBlock = 512;  // what stays in the L1 cache

// Results for at most kColumnBlock neighbours of a kept run.
template <typename T, typename Reducer>
void ReduceColumns(const ReducePlan& plan, const Reducer& reducer, const T* x,
                   int64_t output, int64_t width, ComputeType<T>* results) {
  std::fill_n(results, width, Reducer::Identity());
  const auto fold = [&](const ComputeType<T>* row) {
    for (int64_t i = 0; i < width; ++i)
      results[i] = Reducer::Fold(results[i], reducer.Load(row[i], output + i));
  };
  for (int64_t r = 0; r < plan.reduced.count; ++r) {
    const T* row = x + plan.reduced.Offset(r);
    if constexpr (kIsHalfType<T>) {
      float wide[kColumnBlock];
      WidenRow(row, wide, static_cast<size_t>(width));
      fold(wide);
    } else {
      fold(row);
    }
  }
}

template <typename T, typename Reducer, typename Out>
void ReduceRows(const ReducePlan& plan, const Reducer& reducer, const T* x,
                Out* y, ThreadPool& threads) {
  threads.ParallelFor(
      plan.outputs, LineGrain(plan.reduced_count),
      [&](int64_t begin, int64_t end) {
        for (int64_t output = begin; output < end; ++output) {
          const T* from = x + plan.kept.Offset(output);
          y[output] = Rounded<Out>(Reducer::Finish(
              ReduceRuns(plan, reducer, from, output), plan.reduced_count));
        }
      });
}

// Out is T, or the type it computes in.
template <typename T, typename Reducer, typename Out>
void ReduceAll(const ReducePlan& plan, const Reducer& reducer, const T* x,
               Out* y, ThreadPool& threads) {
  if (plan.outputs == 0) return;
  if (plan.run_is_reduced) return ReduceRows(plan, reducer, x, y, threads);
  const int64_t blocks = (plan.run + kColumnBlock - 1) / kColumnBlock;
  const int64_t width = std::min(plan.run, kColumnBlock);
  threads.ParallelFor(
      plan.kept.count * blocks, LineGrain(plan.reduced_count * width),
      [&](int64_t begin, int64_t end) {
        ComputeType<T> results[kColumnBlock];
        for (int64_t task = begin; task < end; ++task) {
          const int64_t column = task % blocks * kColumnBlock;
          const int64_t columns = std::min(kColumnBlock, plan.run - column);
          const int64_t output = task / blocks * plan.run + column;
          const T* from = x + plan.kept.Offset(task / blocks) + column;
          ReduceColumns(plan, reducer, from, output, columns, results);
          for (int64_t i = 0; i < columns; ++i) {
            y[output + i] =
                Rounded<Out>(Reducer::Finish(results[i], plan.reduced_count));
          }
        }
      });
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_REDUCE_LOOP_H_
