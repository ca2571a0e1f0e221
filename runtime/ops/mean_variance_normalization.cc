// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// MeanVarianceNormalization: (x - mean) / (sqrt(variance) + 1e-9) over any
// axes.
#include <cmath>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/normalization.h"
#include "runtime/ops/reduce_loop.h"
#include "runtime/ops/reducers.h"

namespace addnorm::runtime {
namespace {

absl::StatusOr<ReducePlan> PlanOf(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  std::vector<bool> reduced(x.dims().size(), false);
  const std::vector<int64_t> all_but_channels = {0, 2, 3};
  for (const int64_t axis :
       op.attributes().Ints("axes").value_or(all_but_channels)) {
    ASSIGN_OR_RETURN(const int64_t positive, NormalAxis(axis, x.rank()));
    reduced[positive] = true;
  }
  return MakeReducePlan(x.dims(), reduced);
}

}  // namespace

absl::Status MeanVarianceNormalization(OpContext& op) {
  ASSIGN_OR_RETURN(const ReducePlan plan, PlanOf(op));
  const Tensor& x = op.input(0);
  return op.ForType<ADDNORM_FLOAT_TYPES>(x, [&]<typename T>() -> absl::Status {
    using A = ComputeType<T>;
    const T* from = x.data<T>();
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), x.dims()));
    if (x.count() == 0) return absl::OkStatus();
    std::vector<A> means(static_cast<size_t>(plan.outputs));
    std::vector<A> variances(means.size());
    ReduceAll<T>(plan, reducers::Mean<A>(), from, means.data(), op.threads());
    reducers::Variance<A> variance;
    variance.means = means.data();
    ReduceAll<T>(plan, variance, from, variances.data(), op.threads());
    T* to = y->mutable_data<T>();
    ForEachRun(plan, [&](int64_t offset, int64_t output, int64_t step) {
      for (int64_t i = 0; i < plan.run; ++i, output += step) {
        const A deviation = std::sqrt(variances[output]) + A{1e-9F};
        to[offset + i] =
            Rounded<T>((Widen(from[offset + i]) - means[output]) / deviation);
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace addnorm::runtime
