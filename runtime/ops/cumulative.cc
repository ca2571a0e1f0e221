// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// CumSum and CumProd: one element after the other; half types add up in float
// and are rounded once, when an element is written.
#include "passes/ir/status_macros.h"
#include "runtime/element_types.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/reducers.h"
#include "runtime/ops/reduction.h"

namespace addnorm::runtime {
namespace {

struct Direction {
  bool exclusive = false, reverse = false;
};

template <typename Reducer, typename T>
void Accumulate(const T* x, T* y, int64_t length, int64_t stride,
                Direction direction) {
  ComputeType<T> sum = Reducer::Identity();
  for (int64_t step = 0; step < length; ++step) {
    const int64_t i = (direction.reverse ? length - 1 - step : step) * stride;
    const ComputeType<T> next = Reducer::Fold(sum, Widen(x[i]));
    y[i] = Rounded<T>(direction.exclusive ? sum : next);
    sum = next;
  }
}

template <template <typename> typename Reducer>
absl::Status Cumulate(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const std::vector<int64_t> axis, op.Ints(1));
  if (axis.size() != 1)
    return OpContext::Invalid("the axis is {}, expected one number",
                              Describe(op.input(1)));
  ASSIGN_OR_RETURN(const AxisSplit split, SplitAt(x.dims(), axis[0]));
  const Direction direction{op.attributes().Int("exclusive", 0) != 0,
                            op.attributes().Int("reverse", 0) != 0};
  return op.ForType<ADDNORM_FLOAT_TYPES, int32_t, int64_t, uint32_t, uint64_t>(
      x, [&]<typename T>() -> absl::Status {
        ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), x.dims()));
        if (x.count() == 0) return absl::OkStatus();
        op.threads().ParallelFor(
            split.lines(), LineGrain(split.length),
            [&](int64_t begin, int64_t end) {
              for (int64_t line = begin; line < end; ++line) {
                const int64_t start = split.Start(line);
                Accumulate<Reducer<ComputeType<T>>>(
                    x.data<T>() + start, y->mutable_data<T>() + start,
                    split.length, split.inner, direction);
              }
            });
        return absl::OkStatus();
      });
}

}  // namespace

absl::Status CumSum(OpContext& op) { return Cumulate<reducers::Sum>(op); }
absl::Status CumProd(OpContext& op) { return Cumulate<reducers::Product>(op); }

}  // namespace addnorm::runtime
