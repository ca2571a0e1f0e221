// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Contiguous runs of elements through a function of one or two of them: by the
// row kernel that the function names (WithRows), or else by a loop, to which
// half types are widened by register.
//
// It knows no tensors and no threads (elementwise.h). The result may overwrite
// an operand of the same type, from the same address on.
//
//   constexpr auto kAdd = WithRows<BinaryOp::kAdd>(
//       [](auto a, auto b) { return WrappingAdd(a, b); });
//   BinaryRun(kAdd, a, 1, b, 0, y, n);  // y[i] = a[i] + b[0]
#ifndef ADDNORM_RUNTIME_OPS_ELEMENT_RUNS_H_
#define ADDNORM_RUNTIME_OPS_ELEMENT_RUNS_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "runtime/element_types.h"
#include "runtime/kernels/row_ops.h"

namespace addnorm::runtime {

// Before loops whose element i depends on elements i alone. The result may be
// one of the operands in place, so compilers cannot know that.
#ifdef __clang__
#define ADDNORM_VECTORISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define ADDNORM_VECTORISE _Pragma("GCC ivdep")
#endif

// The result of a function as an element: rounded, but a bool as it is.
template <typename R, typename Value>
R AsElement(Value value) {
  if constexpr (std::is_same_v<R, bool>) {
    return value;
  } else {
    return Rounded<R>(value);
  }
}

// A function that kernels/row_ops.h has as kOp, for rows of floating-point
// elements.
template <auto kOp, typename F>
struct RowFunction : F {
  static constexpr auto kRowOp = kOp;
};
template <auto kOp, typename F>
constexpr RowFunction<kOp, F> WithRows(F f) {
  return {f};
}
template <typename F>
concept NamesRows = requires {
  F::kRowOp;
};
template <typename F, typename T>
inline constexpr bool kHasRows =
    NamesRows<F>&& std::is_floating_point_v<ComputeType<T>>;

// Elements of half types that are widened at once: they stay in the first
// cache.
inline constexpr int64_t kWideBlock = 512;

// Calls f(at, length) for blocks of a run.
template <typename F>
void ForWideBlocks(int64_t length, F f) {
  for (int64_t at = 0; at < length; at += kWideBlock)
    f(at, std::min(kWideBlock, length - at));
}

// Shorter runs take less time in a loop than in a call of a kernel.
inline constexpr int64_t kShortRun = 16;

template <typename R, typename F, typename T>
void UnaryRun(const F& f, const T* x, R* y, int64_t length);
template <typename R, typename F, typename T>
void PairRun(const F& f, const T* a, const T* b, R* y, int64_t length);

// Of a half type, by way of blocks of floats.
template <typename R, typename F, typename T>
void WideUnaryRun(const F& f, const T* x, R* y, int64_t length) {
  ForWideBlocks(length, [&](int64_t at, int64_t n) {
    float wide[kWideBlock];
    WidenRow(x + at, wide, static_cast<size_t>(n));
    if constexpr (kIsHalfType<R>) {
      UnaryRun(f, wide, wide, n);
      RoundRow(wide, y + at, static_cast<size_t>(n));
    } else {
      UnaryRun(f, wide, y + at, n);
    }
  });
}
template <typename R, typename F, typename T>
void WidePairRun(const F& f, const T* a, const T* b, R* y, int64_t length) {
  ForWideBlocks(length, [&](int64_t at, int64_t n) {
    float left[kWideBlock], right[kWideBlock];
    WidenRow(a + at, left, static_cast<size_t>(n));
    WidenRow(b + at, right, static_cast<size_t>(n));
    if constexpr (kIsHalfType<R>) {
      PairRun(f, left, right, left, n);
      RoundRow(left, y + at, static_cast<size_t>(n));
    } else {
      PairRun(f, left, right, y + at, n);
    }
  });
}

template <typename R, typename F, typename T>
void UnaryRun(const F& f, const T* x, R* y, int64_t length) {
  if constexpr (kHasRows<F, T>) {
    if (length >= kShortRun)
      return UnaryRow(F::kRowOp, x, y, static_cast<size_t>(length));
  } else if constexpr (kIsHalfType<T>) {
    if (length >= kShortRun) return WideUnaryRun(f, x, y, length);
  }
  ADDNORM_VECTORISE
  for (int64_t i = 0; i < length; ++i) y[i] = AsElement<R>(f(Widen(x[i])));
}

// Both operands walk along.
template <typename R, typename F, typename T>
void PairRun(const F& f, const T* a, const T* b, R* y, int64_t length) {
  if constexpr (kHasRows<F, T>) {
    if (length >= kShortRun)
      return BinaryRows(F::kRowOp, a, b, y, static_cast<size_t>(length));
  } else if constexpr (kIsHalfType<T>) {
    if (length >= kShortRun) return WidePairRun(f, a, b, y, length);
  }
  ADDNORM_VECTORISE
  for (int64_t i = 0; i < length; ++i)
    y[i] = AsElement<R>(f(Widen(a[i]), Widen(b[i])));
}

// Steps are 1, or 0 for an operand whose one element meets all of the other's.
template <typename R, typename F, typename T>
void BinaryRun(const F& f, const T* a, int64_t a_step, const T* b,
               int64_t b_step, R* y, int64_t length) {
  if (a_step != 0 && b_step != 0) return PairRun(f, a, b, y, length);
  if constexpr (kHasRows<F, T>) {
    const auto n = static_cast<size_t>(length);
    if (length >= kShortRun) {
      return a_step == 0 ? BinaryScalarRow(F::kRowOp, *a, b, y, n)
                         : BinaryRowScalar(F::kRowOp, a, *b, y, n);
    }
  }
  if (a_step == 0) {
    const ComputeType<T> left = Widen(*a);
    UnaryRun([&](auto right) { return f(left, right); }, b, y, length);
  } else {
    const ComputeType<T> right = Widen(*b);
    UnaryRun([&](auto left) { return f(left, right); }, a, y, length);
  }
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_ELEMENT_RUNS_H_
