// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Softmax, LogSoftmax, Hardmax: along one axis since opset 13, before that over
// all axes from one on.
#include <cmath>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/element_types.h"
#include "runtime/exponential.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/normalization.h"
#include "runtime/ops/reducers.h"
#include "runtime/row_sum.h"

namespace addnorm::runtime {
namespace {

template <typename A>
A RowMax(const std::vector<A>& row) {
  using Max = reducers::Max<A>;
  return FoldRow<A>(
      static_cast<int64_t>(row.size()), Max::Identity(),
      [](A a, A b) { return Max::Fold(a, b); },
      [&](int64_t i) { return row[i]; });
}

// The value as an element of T has it: what one op of a function's body hands
// to the next.
template <typename T>
ComputeType<T> RoundTo(ComputeType<T> value) {
  return Widen(Rounded<T>(value));
}

// Each works on a widened row in place; the caller rounds the result. In the
// standard, Softmax and LogSoftmax are functions of ReduceMax, Sub, Exp,
// ReduceSum, Div and Log, so half types are rounded after each of these.
struct SoftmaxRow {
  template <typename T, typename A = ComputeType<T>>
  static void Apply(std::vector<A>& row) {
    const A maximum = RowMax(row);
    for (A& value : row)
      value = RoundTo<T>(Exponential(RoundTo<T>(value - maximum)));
    const A sum = RoundTo<T>(RowSum<A>(static_cast<int64_t>(row.size()),
                                       [&](int64_t i) { return row[i]; }));
    for (A& value : row) value /= sum;
  }
};

struct LogSoftmaxRow {
  template <typename T, typename A = ComputeType<T>>
  static void Apply(std::vector<A>& row) {
    const A maximum = RowMax(row);
    for (A& value : row) value = RoundTo<T>(value - maximum);
    const A sum =
        RoundTo<T>(RowSum<A>(static_cast<int64_t>(row.size()), [&](int64_t i) {
          return RoundTo<T>(Exponential(row[i]));
        }));
    const A logarithm = RoundTo<T>(std::log(sum));
    for (A& value : row) value -= logarithm;
  }
};

struct HardmaxRow {
  template <typename T, typename A = ComputeType<T>>
  static void Apply(std::vector<A>& row) {
    size_t best = 0;
    for (size_t i = 1; i < row.size(); ++i) {
      if (row[i] > row[best]) best = i;
    }
    for (size_t i = 0; i < row.size(); ++i) row[i] = i == best ? A{1} : A{0};
  }
};

absl::StatusOr<AxisSplit> LinesOf(const OpContext& op) {
  const Dims& dims = op.input(0).dims();
  if (op.opset() < 13) return FlattenAt(dims, op.attributes().Int("axis", 1));
  return SplitAt(dims, op.attributes().Int("axis", -1));
}

template <typename Row, typename T>
void ApplyToLine(const T* x, T* y, const AxisSplit& split, int64_t line,
                 std::vector<ComputeType<T>>& row) {
  const int64_t start = split.Start(line);
  for (int64_t i = 0; i < split.length; ++i)
    row[i] = Widen(x[start + i * split.inner]);
  Row::template Apply<T>(row);
  for (int64_t i = 0; i < split.length; ++i)
    y[start + i * split.inner] = Rounded<T>(row[i]);
}

template <typename Row>
absl::Status ApplyToLines(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const AxisSplit split, LinesOf(op));
  return op.ForType<ADDNORM_FLOAT_TYPES>(x, [&]<typename T>() -> absl::Status {
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), x.dims()));
    if (x.count() == 0) return absl::OkStatus();
    const T* from = x.data<T>();
    T* to = y->mutable_data<T>();
    op.threads().ParallelFor(
        split.lines(), LineGrain(split.length),
        [&](int64_t begin, int64_t end) {
          std::vector<ComputeType<T>> row(static_cast<size_t>(split.length));
          for (int64_t line = begin; line < end; ++line)
            ApplyToLine<Row>(from, to, split, line, row);
        });
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status Softmax(OpContext& op) { return ApplyToLines<SoftmaxRow>(op); }
absl::Status LogSoftmax(OpContext& op) {
  return ApplyToLines<LogSoftmaxRow>(op);
}
absl::Status Hardmax(OpContext& op) { return ApplyToLines<HardmaxRow>(op); }

}  // namespace addnorm::runtime
