// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops that compute each element of the result from one element of each operand:
// the frame around a function of elements.
//
// A function takes and gives elements of the computing type: Half and BFloat16
// operands come as floats, and the result is rounded once. It is a constant
// lambda, or a class made from the OpContext where it depends on attributes.
// Contiguous runs are computed in UnaryRun and BinaryRun and nowhere else, so
// that is where a faster kernel for one function and type goes.
//
//   constexpr auto kExp = [](auto x) { return std::exp(x); };
//   constexpr OpRow kRows[] = {
//       {"", "Exp", Unary<kExp, ADDNORM_FLOAT_TYPES>, {{0, 0}}}};
#ifndef ADDNORM_RUNTIME_OPS_ELEMENTWISE_H_
#define ADDNORM_RUNTIME_OPS_ELEMENTWISE_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "passes/ir/status_macros.h"
#include "runtime/broadcast.h"
#include "runtime/op.h"

namespace addnorm::runtime {

// Before loops whose element i depends on elements i alone. The result may be
// one of the operands in place, so compilers cannot know that.
#ifdef __clang__
#define ADDNORM_VECTORISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define ADDNORM_VECTORISE _Pragma("GCC ivdep")
#endif

// Elements that are worth a thread: where memory is what takes the time, and
// where a function of the C library is called for each element.
inline constexpr int64_t kMemoryGrain = 32 * 1024;
inline constexpr int64_t kMathGrain = 4 * 1024;

// The result of a function as an element: rounded, but a bool as it is.
template <typename R, typename Value>
R AsElement(Value value) {
  if constexpr (std::is_same_v<R, bool>) {
    return value;
  } else {
    return Rounded<R>(value);
  }
}

template <typename R, typename F, typename T>
void UnaryRun(const F& f, const T* x, R* y, int64_t length) {
  ADDNORM_VECTORISE
  for (int64_t i = 0; i < length; ++i) y[i] = AsElement<R>(f(Widen(x[i])));
}

// Steps are 1, or 0 for an operand whose one element meets all of the other's.
template <typename R, typename F, typename T>
void BinaryRun(const F& f, const T* a, int64_t a_step, const T* b,
               int64_t b_step, R* y, int64_t length) {
  if (a_step == 0) {
    const ComputeType<T> left = Widen(*a);
    UnaryRun<R>([&](auto right) { return f(left, right); }, b, y, length);
  } else if (b_step == 0) {
    const ComputeType<T> right = Widen(*b);
    UnaryRun<R>([&](auto left) { return f(left, right); }, a, y, length);
  } else {
    ADDNORM_VECTORISE
    for (int64_t i = 0; i < length; ++i)
      y[i] = AsElement<R>(f(Widen(a[i]), Widen(b[i])));
  }
}

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
  return MapUnary<void, Ts...>(op, kFunction, kMathGrain);
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

// Integers whose arithmetic wraps around, as the operators of ONNX do: C++
// leaves that undefined for signed types, and promotes small unsigned ones to
// int. Floating-point types stay what they are.
template <typename T>
using Wrapping =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<(sizeof(T) < 8), uint32_t, uint64_t>,
                       T>;

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_ELEMENTWISE_H_
