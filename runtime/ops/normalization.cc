// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/normalization.h"

#include <cmath>

#include "passes/ir/status_macros.h"
#include "runtime/element_types.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/groups.h"
#include "runtime/ops/reducers.h"
#include "runtime/row_sum.h"

namespace addnorm::runtime {
namespace {

// A line over its norm; where that is 0, all elements are.
template <typename Norm, typename T>
void DivideByNorm(const T* x, T* y, int64_t length, int64_t stride) {
  using A = ComputeType<T>;
  const A norm = Norm::Finish(
      RowSum<A>(length,
                [&](int64_t i) { return Norm::Load(Widen(x[i * stride]), 0); }),
      length);
  for (int64_t i = 0; i < length; ++i) {
    const A value = Widen(x[i * stride]);
    y[i * stride] = Rounded<T>(norm == A{0} ? A{0} : value / norm);
  }
}

absl::Status LpNormalization(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const AxisSplit split,
                   SplitAt(x.dims(), op.attributes().Int("axis", -1)));
  const int64_t p = op.attributes().Int("p", 2);
  if (p != 1 && p != 2) return OpContext::Invalid("p is {}, not 1 or 2", p);
  return op.ForType<ADDNORM_FLOAT_TYPES>(x, [&]<typename T>() -> absl::Status {
    using A = ComputeType<T>;
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), x.dims()));
    if (x.count() == 0) return absl::OkStatus();
    const auto divide = p == 1 ? DivideByNorm<reducers::L1<A>, T>
                               : DivideByNorm<reducers::L2<A>, T>;
    op.threads().ParallelFor(split.lines(), LineGrain(split.length),
                             [&](int64_t begin, int64_t end) {
                               for (int64_t line = begin; line < end; ++line) {
                                 const int64_t start = split.Start(line);
                                 divide(x.data<T>() + start,
                                        y->mutable_data<T>() + start,
                                        split.length, split.inner);
                               }
                             });
    return absl::OkStatus();
  });
}

constexpr OpRow kRows[] = {
    {"", "BatchNormalization", BatchNormalization, {{0, 0}}},
    {"", "GroupNormalization", GroupNormalization, {{0, 0}}},
    {"", "Hardmax", Hardmax, {{0, 0}}},
    {"", "InstanceNormalization", InstanceNormalization, {{0, 0}}},
    {"", "LayerNormalization", LayerNormalization, {{0, 0}}},
    {"", "LogSoftmax", LogSoftmax, {{0, 0}}},
    {"", "LpNormalization", LpNormalization, {{0, 0}}},
    {"", "MeanVarianceNormalization", MeanVarianceNormalization, {{0, 0}}},
    {"", "Softmax", Softmax, {{0, 0}}},
};

}  // namespace

OpTable NormalizationOps() { return kRows; }

}  // namespace addnorm::runtime
