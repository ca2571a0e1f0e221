// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Max, Min, Sum and Mean of any number of operands. All operands of an element
// are combined from the first to the last in the computing type, and the result
// is rounded once; Mean divides the sum by their number.
#include <algorithm>
#include <array>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/groups.h"

namespace addnorm::runtime {
namespace {

// Elements whose results so far fit the first cache.
constexpr int64_t kBlock = 512;

// A NaN wins; of equals (±0) the first does.
constexpr auto kMax = []<typename T>(T a, T b) -> T {
  return a >= b || a != a ? a : b;
};
constexpr auto kMin = []<typename T>(T a, T b) -> T {
  return a <= b || a != a ? a : b;
};
constexpr auto kSum = []<typename T>(T a, T b) -> T { return a + b; };

constexpr auto kAsItIs = []<typename T>(T value, int64_t) -> T {
  return value;
};
constexpr auto kDivideByCount = []<typename T>(T value, int64_t count) -> T {
  return value / static_cast<T>(count);
};

absl::StatusOr<BroadcastPlan> PlanOf(const OpContext& op) {
  if (op.input_count() == 0) return OpContext::Invalid("has no operands");
  RETURN_IF_ERROR(RequireAlike(op, op.input_count()));
  std::vector<const Tensor*> operands;
  for (size_t k = 0; k < op.input_count(); ++k)
    operands.push_back(&op.input(k));
  return BroadcastPlan::Of(operands);
}

template <typename T, typename Combine, typename Finish>
void CombineRun(const OpContext& op, const BroadcastPlan& plan,
                const int64_t* offsets, T* y, int64_t length, Combine combine,
                Finish finish) {
  std::array<ComputeType<T>, kBlock> results, values;
  const int64_t count = static_cast<int64_t>(op.input_count());
  for (int64_t at = 0; at < length; at += kBlock) {
    const int64_t size = std::min(kBlock, length - at);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t step = plan.step(k);
      const T* x = op.input(k).data<T>() + offsets[k] + at * step;
      ComputeType<T>* const to = k == 0 ? results.data() : values.data();
      if (step == 0) {
        std::fill_n(to, size, Widen(*x));
      } else {
        WidenRow(x, to, static_cast<size_t>(size));
      }
      if (k == 0) continue;
      for (int64_t i = 0; i < size; ++i)
        results[i] = combine(results[i], values[i]);
    }
    for (int64_t i = 0; i < size; ++i) results[i] = finish(results[i], count);
    RoundRow(results.data(), y + at, static_cast<size_t>(size));
  }
}

template <const auto& kCombine, const auto& kFinish, typename... Ts>
absl::Status Variadic(OpContext& op) {
  ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanOf(op));
  if (op.input_count() == 2) {
    constexpr auto kBoth = [](auto a, auto b) {
      return kFinish(kCombine(a, b), 2);
    };
    return MapBinary<void, Ts...>(op, plan, kBoth, kMemoryGrain);
  }
  return op.ForType<Ts...>(op.input(0), [&]<typename T>() -> absl::Status {
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, kTypeOf<T>, plan.dims()));
    const auto run = [&](int64_t out, const int64_t* at, int64_t length) {
      CombineRun(op, plan, at, y->mutable_data<T>() + out, length, kCombine,
                 kFinish);
    };
    op.threads().ParallelFor(
        plan.count(), kMemoryGrain,
        [&](int64_t from, int64_t to) { plan.ForEachRun(from, to, run); });
    return absl::OkStatus();
  });
}

constexpr OpRow kRows[] = {
    {"", "Max", Variadic<kMax, kAsItIs, ADDNORM_NUMBER_TYPES>, {{0, 0}}},
    {"", "Mean", Variadic<kSum, kDivideByCount, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Min", Variadic<kMin, kAsItIs, ADDNORM_NUMBER_TYPES>, {{0, 0}}},
    {"", "Sum", Variadic<kSum, kAsItIs, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
};

}  // namespace

OpTable VariadicOps() { return kRows; }

}  // namespace addnorm::runtime
