// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops that compute each element of the result from one element of each operand:
// the frame around a function of elements.
//
// A function takes and gives elements of the computing type: Half and BFloat16
// operands come as floats, and the result is rounded once. It is a constant
// lambda, or a class made from the OpContext where it depends on attributes.
// Contiguous runs are computed by element_runs.h and nowhere else.
//
//   constexpr auto kExp = [](auto x) { return std::exp(x); };
//   constexpr OpRow kRows[] = {
//       {"", "Exp", Unary<kExp, ADDNORM_FLOAT_TYPES>, {{0, 0}}}};
#ifndef ADDNORM_RUNTIME_OPS_ELEMENTWISE_H_
#define ADDNORM_RUNTIME_OPS_ELEMENTWISE_H_

#include <cstdint>
#include <type_traits>

#include "passes/ir/status_macros.h"
#include "runtime/broadcast.h"
#include "runtime/grain.h"
#include "runtime/op.h"
#include "runtime/ops/element_runs.h"

namespace addnorm::runtime {

// Elements that are worth a thread where a function of the C library is called
// for each of them; where memory is what takes the time: kMemoryGrain.
inline constexpr int64_t kMathGrain = 4 * 1024;

// Operands from the first on: there, and of one type.
inline absl::Status RequireAlike(const OpContext& op, size_t count) {
  RETURN_IF_ERROR(op.RequireInputs(count));
  for (size_t i = 1; i < count; ++i) {
    if (op.input(i).type() == op.input(0).type()) continue;
    return OpContext::Invalid("operand {} is {}, expected the type of {}", i,
                              Describe(op.input(i)), Describe(op.input(0)));
  }
  return absl::OkStatus();
}

// R is the type of the result's elements, void for the operand's.
template <typename R, typename T>
using ResultOf = std::conditional_t<std::is_void_v<R>, T, R>;

template <typename R, typename... Ts, typename F>
absl::Status MapUnary(OpContext& op, const F& f, int64_t grain) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  const auto map = [&]<typename T>() -> absl::Status {
    using Result = ResultOf<R, T>;
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, kTypeOf<Result>, x.dims()));
    op.threads().ParallelFor(x.count(), grain, [&](int64_t from, int64_t to) {
      UnaryRun(f, x.data<T>() + from, y->mutable_data<Result>() + from,
               to - from);
    });
    return absl::OkStatus();
  };
  return op.ForType<Ts...>(x, map);
}

template <typename R, typename... Ts, typename F>
absl::Status MapBinary(OpContext& op, const BroadcastPlan& plan, const F& f,
                       int64_t grain) {
  const Tensor& a = op.input(0);
  const Tensor& b = op.input(1);
  const auto map = [&]<typename T>() -> absl::Status {
    using Result = ResultOf<R, T>;
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, kTypeOf<Result>, plan.dims()));
    const auto run = [&](int64_t out, const int64_t* at, int64_t length) {
      BinaryRun(f, a.data<T>() + at[0], plan.step(0), b.data<T>() + at[1],
                plan.step(1), y->mutable_data<Result>() + out, length);
    };
    op.threads().ParallelFor(
        plan.count(), grain,
        [&](int64_t from, int64_t to) { plan.ForEachRun(from, to, run); });
    return absl::OkStatus();
  };
  return op.ForType<Ts...>(a, map);
}

// ---- whole ops, for rows of a table

template <const auto& kFunction, typename... Ts>
absl::Status Unary(OpContext& op) {
  using F = std::remove_cvref_t<decltype(kFunction)>;
  return MapUnary<void, Ts...>(op, kFunction,
                               NamesRows<F> ? kMemoryGrain : kMathGrain);
}

template <typename Function, typename... Ts>
absl::Status UnaryWith(OpContext& op) {
  return MapUnary<void, Ts...>(op, Function(op), kMathGrain);
}

template <const auto& kFunction, typename... Ts>
absl::Status Binary(OpContext& op) {
  RETURN_IF_ERROR(RequireAlike(op, 2));
  ASSIGN_OR_RETURN(const BroadcastPlan plan,
                   BroadcastPlan::Of({&op.input(0), &op.input(1)}));
  return MapBinary<void, Ts...>(op, plan, kFunction, kMemoryGrain);
}

// A binary op whose result is bool.
template <const auto& kFunction, typename... Ts>
absl::Status Compare(OpContext& op) {
  RETURN_IF_ERROR(RequireAlike(op, 2));
  ASSIGN_OR_RETURN(const BroadcastPlan plan,
                   BroadcastPlan::Of({&op.input(0), &op.input(1)}));
  return MapBinary<bool, Ts...>(op, plan, kFunction, kMemoryGrain);
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_ELEMENTWISE_H_
