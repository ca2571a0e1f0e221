// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Reduce*: axes as attribute or operand, then the loops of reduce_loop.h.
#include "runtime/ops/reduction.h"

#include <cmath>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/groups.h"
#include "runtime/ops/reduce_loop.h"
#include "runtime/ops/reducers.h"

namespace addnorm::runtime {
namespace {

absl::StatusOr<std::vector<int64_t>> AxesOf(const OpContext& op) {
  if (op.has_input(1)) return op.Ints(1);
  return op.attributes().Ints("axes").value_or(std::vector<int64_t>());
}

// Which axes are reduced. No axes mean all, unless the node says none.
absl::StatusOr<std::vector<bool>> ReducedAxes(const OpContext& op,
                                              int64_t rank) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, AxesOf(op));
  const bool none = op.attributes().Int("noop_with_empty_axes", 0) != 0;
  std::vector<bool> reduced(static_cast<size_t>(rank), axes.empty() && !none);
  for (const int64_t axis : axes) {
    ASSIGN_OR_RETURN(const int64_t positive, NormalAxis(axis, rank));
    reduced[positive] = true;
  }
  return reduced;
}

struct Reduction {
  ReducePlan plan;
  Dims dims;  // of the result
};

absl::StatusOr<Reduction> PlanOf(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReducedAxes(op, x.rank()));
  Reduction result{MakeReducePlan(x.dims(), reduced), {}};
  const bool keep = op.attributes().Int("keepdims", 1) != 0;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i]) result.dims.push_back(x.dims()[i]);
    if (reduced[i] && keep) result.dims.push_back(1);
  }
  return result;
}

template <template <typename> typename Reducer, typename... Ts>
absl::Status Reduce(OpContext& op) {
  ASSIGN_OR_RETURN(const Reduction reduction, PlanOf(op));
  const Tensor& x = op.input(0);
  return op.ForType<Ts...>(x, [&]<typename T>() -> absl::Status {
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), reduction.dims));
    ReduceAll<T>(reduction.plan, Reducer<ComputeType<T>>(), x.data<T>(),
                 y->mutable_data<T>(), op.threads());
    return absl::OkStatus();
  });
}

absl::Status ReduceMean(OpContext& op) {
  ASSIGN_OR_RETURN(const Reduction reduction, PlanOf(op));
  if (reduction.plan.reduced_count == 0 && !ir::IsFloat(op.input(0).type()))
    return OpContext::Invalid("integers have no mean of no elements");
  return Reduce<reducers::Mean, ADDNORM_FLOAT_TYPES, int32_t, int64_t, uint32_t,
                uint64_t>(op);
}

// log(sum(e^x)) with the largest element taken out of the sum.
absl::Status ReduceLogSumExp(OpContext& op) {
  ASSIGN_OR_RETURN(const Reduction reduction, PlanOf(op));
  const ReducePlan& plan = reduction.plan;
  const Tensor& x = op.input(0);
  return op.ForType<ADDNORM_FLOAT_TYPES>(x, [&]<typename T>() -> absl::Status {
    using A = ComputeType<T>;
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), reduction.dims));
    ASSIGN_OR_RETURN(Tensor maximum, op.Scratch(x.type(), {plan.outputs}));
    ReduceAll<T>(plan, reducers::Max<A>(), x.data<T>(),
                 maximum.mutable_data<T>(), op.threads());
    std::vector<A> shifts;
    for (const T value : maximum.elements<T>())
      shifts.push_back(std::isfinite(Widen(value)) ? Widen(value) : A{0});
    ASSIGN_OR_RETURN(Tensor sums, op.Scratch(kTypeOf<A>, {plan.outputs}));
    reducers::SumExp<A> sum;
    sum.shifts = shifts.data();
    ReduceAll<T>(plan, sum, x.data<T>(), sums.mutable_data<A>(), op.threads());
    for (int64_t i = 0; i < plan.outputs; ++i) {
      y->mutable_data<T>()[i] =
          Rounded<T>(std::log(sums.data<A>()[i]) + shifts[i]);
    }
    return absl::OkStatus();
  });
}

#define WIDE_TYPES ADDNORM_FLOAT_TYPES, int32_t, int64_t, uint32_t, uint64_t

constexpr OpRow kRows[] = {
    {"", "ArgMax", ArgMax},
    {"", "ArgMin", ArgMin},
    {"", "CumProd", CumProd},
    {"", "CumSum", CumSum},
    {"", "ReduceL1", Reduce<reducers::L1, WIDE_TYPES>},
    {"", "ReduceL2", Reduce<reducers::L2, WIDE_TYPES>},
    {"", "ReduceLogSum", Reduce<reducers::LogSum, ADDNORM_FLOAT_TYPES>},
    {"", "ReduceLogSumExp", ReduceLogSumExp},
    {"", "ReduceMax", Reduce<reducers::Max, ADDNORM_NUMBER_TYPES, bool>},
    {"", "ReduceMean", ReduceMean},
    {"", "ReduceMin", Reduce<reducers::Min, ADDNORM_NUMBER_TYPES, bool>},
    {"", "ReduceProd", Reduce<reducers::Product, WIDE_TYPES>},
    {"", "ReduceSum", Reduce<reducers::Sum, WIDE_TYPES>},
    {"", "ReduceSumSquare", Reduce<reducers::SumSquare, WIDE_TYPES>},
};

}  // namespace

OpTable ReductionOps() { return kRows; }

}  // namespace addnorm::runtime
