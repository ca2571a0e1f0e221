// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// ArgMax and ArgMin. A NaN is taken as the extreme, as numpy does.
#include <functional>

#include "passes/ir/status_macros.h"
#include "runtime/element_types.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/reduction.h"

namespace addnorm::runtime {
namespace {

// True if x replaces the best so far, which came before it.
template <typename Better, typename A>
bool Replaces(A x, A best, bool last_of_equals) {
  if (best != best) return last_of_equals && x != x;
  return Better()(x, best) || x != x || (last_of_equals && x == best);
}

template <typename Better, typename T>
int64_t BestIndex(const T* x, int64_t length, int64_t stride,
                  bool last_of_equals) {
  int64_t index = 0;
  auto best = Widen(x[0]);
  for (int64_t i = 1; i < length; ++i) {
    const auto value = Widen(x[i * stride]);
    if (!Replaces<Better>(value, best, last_of_equals)) continue;
    best = value;
    index = i;
  }
  return index;
}

Dims WithoutAxis(Dims dims, int64_t axis, bool keep) {
  if (keep) {
    dims[axis] = 1;
  } else {
    dims.erase(dims.begin() + axis);
  }
  return dims;
}

template <typename Better>
absl::Status ArgBest(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const AxisSplit split,
                   SplitAt(x.dims(), op.attributes().Int("axis", 0)));
  if (split.length == 0 && split.lines() > 0)
    return OpContext::Invalid("axis {} of {} is empty", split.axis,
                              Describe(x));
  const bool last = op.attributes().Int("select_last_index", 0) != 0;
  const bool keep = op.attributes().Int("keepdims", 1) != 0;
  ASSIGN_OR_RETURN(Tensor * y,
                   op.Output(0, ir::DataType::kInt64,
                             WithoutAxis(x.dims(), split.axis, keep)));
  return op.ForType<ADDNORM_NUMBER_TYPES>(x, [&]<typename T>() {
    op.threads().ParallelFor(split.lines(), LineGrain(split.length),
                             [&](int64_t begin, int64_t end) {
                               for (int64_t line = begin; line < end; ++line) {
                                 y->mutable_data<int64_t>()[line] =
                                     BestIndex<Better>(
                                         x.data<T>() + split.Start(line),
                                         split.length, split.inner, last);
                               }
                             });
  });
}

}  // namespace

absl::Status ArgMax(OpContext& op) { return ArgBest<std::greater<>>(op); }
absl::Status ArgMin(OpContext& op) { return ArgBest<std::less<>>(op); }

}  // namespace addnorm::runtime
