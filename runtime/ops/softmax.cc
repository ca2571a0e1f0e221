// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Softmax, LogSoftmax, Hardmax: along one axis since opset 13, before that over
// all axes from one on.
#include <algorithm>
#include <cmath>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/element_types.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/normalization.h"

namespace addnorm::runtime {
namespace {

// A row x becomes y, which may be x. In the standard, Softmax and LogSoftmax
// are functions of ReduceMax, Sub, Exp, ReduceSum, Div and Log, so half types
// are rounded after each of these.
template <typename T>
void SubtractMax(const T* x, T* y, size_t n) {
  BinaryRowScalar(BinaryOp::kSubtract, x, Rounded<T>(MaxRow(x, n)), y, n);
}

struct SoftmaxRow {
  template <typename T>
  static void Apply(const T* x, T* y, size_t n) {
    SubtractMax(x, y, n);
    UnaryRow(UnaryOp::kExponential, y, y, n);
    BinaryRowScalar(BinaryOp::kDivide, y, Rounded<T>(SumRow(y, n)), y, n);
  }
};

struct LogSoftmaxRow {
  template <typename T>
  static void Apply(const T* x, T* y, size_t n) {
    SubtractMax(x, y, n);
    std::vector<T> powers(n);
    UnaryRow(UnaryOp::kExponential, y, powers.data(), n);
    const T sum = Rounded<T>(SumRow(powers.data(), n));
    const T logarithm = Rounded<T>(std::log(Widen(sum)));
    BinaryRowScalar(BinaryOp::kSubtract, y, logarithm, y, n);
  }
};

struct HardmaxRow {
  template <typename T>
  static void Apply(const T* x, T* y, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; ++i) {
      if (Widen(x[i]) > Widen(x[best])) best = i;
    }
    std::fill_n(y, n, T{});
    y[best] = Narrow<T>(1);
  }
};

absl::StatusOr<AxisSplit> LinesOf(const OpContext& op) {
  const Dims& dims = op.input(0).dims();
  if (op.opset() < 13) return FlattenAt(dims, op.attributes().Int("axis", 1));
  return SplitAt(dims, op.attributes().Int("axis", -1));
}

// `row` has room for the line's elements, if they are apart.
template <typename Row, typename T>
void ApplyToLine(const T* x, T* y, const AxisSplit& split, int64_t line,
                 std::vector<T>& row) {
  const int64_t start = split.Start(line);
  const auto n = static_cast<size_t>(split.length);
  if (split.inner == 1) return Row::Apply(x + start, y + start, n);
  for (size_t i = 0; i < n; ++i)
    row[i] = x[start + static_cast<int64_t>(i) * split.inner];
  Row::Apply(row.data(), row.data(), n);
  for (size_t i = 0; i < n; ++i)
    y[start + static_cast<int64_t>(i) * split.inner] = row[i];
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
    op.threads().ParallelFor(split.lines(), LineGrain(split.length),
                             [&](int64_t begin, int64_t end) {
                               std::vector<T> row;
                               if (split.inner > 1)
                                 row.resize(static_cast<size_t>(split.length));
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
