// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/row_ops.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/exponential.h"
#include "runtime/kernels/highway_targets.h"
// After the above.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/row_ops.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "runtime/kernels/exponential-inl.h"
#include "runtime/kernels/row_ops-inl.h"

// What each target provides: pointers to its functions for elements of T.
#ifndef ADDNORM_RUNTIME_KERNELS_ROW_FUNCTIONS
#define ADDNORM_RUNTIME_KERNELS_ROW_FUNCTIONS
namespace addnorm::runtime {

template <typename T>
struct RowFunctions {
  // By BinaryOp. Of the form's scalar operand only element 0 is read.
  using Binary = void (*)(const T* a, const T* b, T* out, size_t n);
  Binary rows[4], row_scalar[4], scalar_row[4];
  void (*unary[5])(const T* a, T* out, size_t n);  // by UnaryOp
  ComputeType<T> (*sum)(const T* a, size_t n);
  ComputeType<T> (*sum_of_squares)(const T* a, size_t n);
  ComputeType<T> (*max)(const T* a, size_t n);
};

struct AllRowFunctions {
  RowFunctions<float> of_float;
  RowFunctions<double> of_double;
  RowFunctions<Half> of_half;
  RowFunctions<BFloat16> of_bfloat16;
  void (*widen_half)(const Half*, float*, size_t);
  void (*widen_bfloat16)(const BFloat16*, float*, size_t);
  void (*narrow_half)(const float*, Half*, size_t);
  void (*narrow_bfloat16)(const float*, BFloat16*, size_t);
  void (*round_half)(const float*, Half*, size_t);
  void (*round_bfloat16)(const float*, BFloat16*, size_t);
  void (*stream)(const void*, void*, size_t);
};

}  // namespace addnorm::runtime
#endif  // ADDNORM_RUNTIME_KERNELS_ROW_FUNCTIONS

HWY_BEFORE_NAMESPACE();
namespace addnorm::runtime::HWY_NAMESPACE {
namespace {

template <BinaryOp kOp, class V>
HWY_INLINE V Apply(V a, V b) {
  if constexpr (kOp == BinaryOp::kAdd) {
    return hn::Add(a, b);
  } else if constexpr (kOp == BinaryOp::kSubtract) {
    return hn::Sub(a, b);
  } else if constexpr (kOp == BinaryOp::kMultiply) {
    return hn::Mul(a, b);
  } else {
    return Quotient(a, b);
  }
}

template <UnaryOp kOp, class D>
HWY_INLINE hn::Vec<D> Apply(D d, hn::Vec<D> v) {
  using T = hn::TFromD<D>;
  if constexpr (kOp == UnaryOp::kSquareRoot) {
    return hn::Sqrt(v);
  } else if constexpr (kOp == UnaryOp::kReciprocal) {
    return Quotient(hn::Set(d, T{1}), v);
  } else if constexpr (kOp == UnaryOp::kNegate) {
    return hn::Xor(v, hn::Set(d, T{-0.0}));
  } else if constexpr (kOp == UnaryOp::kExponential) {
    return ExponentialLanes(d, v);
  } else {
    return hn::Mul(v, v);
  }
}

template <typename T, BinaryOp kOp>
void Rows(const T* a, const T* b, T* out, size_t n) {
  MapRows(n, a, b, out,
          [](auto va, auto vb) HWY_ATTR { return Apply<kOp>(va, vb); });
}

template <typename T, BinaryOp kOp>
void RowScalar(const T* a, const T* b, T* out, size_t n) {
  const auto vb = hn::Set(WideTag<T>(), Widen(*b));
  MapRow(n, a, out, [vb](auto va) HWY_ATTR { return Apply<kOp>(va, vb); });
}

template <typename T, BinaryOp kOp>
void ScalarRow(const T* a, const T* b, T* out, size_t n) {
  const auto va = hn::Set(WideTag<T>(), Widen(*a));
  MapRow(n, b, out, [va](auto vb) HWY_ATTR { return Apply<kOp>(va, vb); });
}

template <typename T, UnaryOp kOp>
void Unary(const T* a, T* out, size_t n) {
  const WideTag<T> d;
  MapRow(n, a, out, [d](auto v) HWY_ATTR { return Apply<kOp>(d, v); });
}
template <>
void Unary<double, UnaryOp::kExponential>(const double* a, double* out,
                                          size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = Canonical(Exponential(a[i]));
}

template <typename T>
ComputeType<T> Sum(const T* a, size_t n) {
  return Canonical(RowSum(n, a, [](auto v) HWY_ATTR { return v; }));
}

template <typename T>
ComputeType<T> SumOfSquares(const T* a, size_t n) {
  return Canonical(RowSum(n, a, [](auto v) HWY_ATTR { return hn::Mul(v, v); }));
}

// A copy of the lanes of all vectors, in order of the elements.
template <typename T, typename C = ComputeType<T>>
HWY_INLINE void StoreLanes(const hn::Vec<WideTag<T>>* lanes, C* to) {
  using Lanes = SumLanesOf<T>;
  constexpr size_t kApart = kInPairs<T> ? 2 : 1;
  for (size_t k = 0; k < Lanes::kVectors; ++k) {
    HWY_ALIGN C vector[Lanes::kStep];
    hn::Store(lanes[k], WideTag<T>(), vector);
    const size_t first = k / kApart * kApart * Lanes::kStep + k % kApart;
    for (size_t i = 0; i < Lanes::kStep; ++i)
      to[first + i * kApart] = vector[i];
  }
}

template <typename T>
ComputeType<T> Max(const T* a, size_t n) {
  using C = ComputeType<T>;
  constexpr C kLowest = -std::numeric_limits<C>::infinity();
  hn::Vec<WideTag<T>> lanes[SumLanesOf<T>::kVectors];
  for (auto& lane : lanes) lane = hn::Set(WideTag<T>(), kLowest);
  const auto fold = [&](size_t k, hn::Vec<WideTag<T>> v) HWY_ATTR {
    const auto wins = hn::Or(hn::Gt(v, lanes[k]), hn::IsNaN(v));
    lanes[k] = hn::IfThenElse(wins, v, lanes[k]);
  };
  size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) ForVectorsOfBlock(a + i, fold);
  T last[kSumLanes];
  std::fill_n(last, kSumLanes, Narrow<T>(kLowest));
  std::memcpy(last, a + i, (n - i) * sizeof(T));
  ForVectorsOfBlock(last, fold);
  C all[kSumLanes];
  StoreLanes<T>(lanes, all);
  for (size_t h = kSumLanes / 2; h > 0; h /= 2) {
    for (size_t k = 0; k < h; ++k) {
      if (all[k + h] > all[k] || all[k + h] != all[k + h]) all[k] = all[k + h];
    }
  }
  return Canonical(all[0]);
}

template <Result kResult, typename In, typename Out>
void Convert(const In* a, Out* out, size_t n) {
  MapRow<kResult>(n, a, out, [](auto v) HWY_ATTR { return v; });
}

void Stream(const void* from, void* to, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  constexpr size_t kStep = hn::MaxLanes(d);
  const auto* source = static_cast<const uint8_t*>(from);
  auto* target = static_cast<uint8_t*>(to);
  // Such stores need whole, aligned vectors.
  const size_t misaligned = reinterpret_cast<uintptr_t>(target) % kStep;
  size_t i = 0;
  if (misaligned != 0) i = HWY_MIN(kStep - misaligned, bytes);
  std::memcpy(target, source, i);
  for (; i + kStep <= bytes; i += kStep)
    hn::Stream(hn::LoadU(d, source + i), d, target + i);
  std::memcpy(target + i, source + i, bytes - i);
}

template <typename T>
constexpr RowFunctions<T> FunctionsOf() {
  using enum BinaryOp;
  using enum UnaryOp;
  return {
      {Rows<T, kAdd>, Rows<T, kSubtract>, Rows<T, kMultiply>, Rows<T, kDivide>},
      {RowScalar<T, kAdd>, RowScalar<T, kSubtract>, RowScalar<T, kMultiply>,
       RowScalar<T, kDivide>},
      {ScalarRow<T, kAdd>, ScalarRow<T, kSubtract>, ScalarRow<T, kMultiply>,
       ScalarRow<T, kDivide>},
      {Unary<T, kSquareRoot>, Unary<T, kReciprocal>, Unary<T, kNegate>,
       Unary<T, kSquare>, Unary<T, kExponential>},
      Sum<T>,
      SumOfSquares<T>,
      Max<T>};
}

const AllRowFunctions& Functions() {
  using enum Result;
  static constexpr AllRowFunctions kFunctions = {
      FunctionsOf<float>(),
      FunctionsOf<double>(),
      FunctionsOf<Half>(),
      FunctionsOf<BFloat16>(),
      Convert<kConverted, Half, float>,
      Convert<kConverted, BFloat16, float>,
      Convert<kConverted, float, Half>,
      Convert<kConverted, float, BFloat16>,
      Convert<kComputed, float, Half>,
      Convert<kComputed, float, BFloat16>,
      Stream};
  return kFunctions;
}

}  // namespace
}  // namespace addnorm::runtime::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace addnorm::runtime {
namespace {

HWY_EXPORT(Functions);

const AllRowFunctions& AllFunctions() {
  return HWY_DYNAMIC_DISPATCH(Functions)();
}

template <typename T>
const RowFunctions<T>& FunctionsOf() {
  const AllRowFunctions& all = AllFunctions();
  if constexpr (std::is_same_v<T, float>) {
    return all.of_float;
  } else if constexpr (std::is_same_v<T, double>) {
    return all.of_double;
  } else if constexpr (std::is_same_v<T, Half>) {
    return all.of_half;
  } else {
    return all.of_bfloat16;
  }
}

}  // namespace

template <typename T>
void BinaryRows(BinaryOp op, const T* a, const T* b, T* out, size_t n) {
  FunctionsOf<T>().rows[static_cast<size_t>(op)](a, b, out, n);
}

template <typename T>
void BinaryRowScalar(BinaryOp op, const T* a, T b, T* out, size_t n) {
  FunctionsOf<T>().row_scalar[static_cast<size_t>(op)](a, &b, out, n);
}

template <typename T>
void BinaryScalarRow(BinaryOp op, T a, const T* b, T* out, size_t n) {
  FunctionsOf<T>().scalar_row[static_cast<size_t>(op)](&a, b, out, n);
}

template <typename T>
void UnaryRow(UnaryOp op, const T* a, T* out, size_t n) {
  FunctionsOf<T>().unary[static_cast<size_t>(op)](a, out, n);
}

template <typename T>
ComputeType<T> SumRow(const T* a, size_t n) {
  return FunctionsOf<T>().sum(a, n);
}

template <typename T>
ComputeType<T> SumOfSquaresRow(const T* a, size_t n) {
  return FunctionsOf<T>().sum_of_squares(a, n);
}

template <typename T>
ComputeType<T> MaxRow(const T* a, size_t n) {
  return FunctionsOf<T>().max(a, n);
}

#define ADDNORM_INSTANTIATE(T)                                        \
  template void BinaryRows(BinaryOp, const T*, const T*, T*, size_t); \
  template void BinaryRowScalar(BinaryOp, const T*, T, T*, size_t);   \
  template void BinaryScalarRow(BinaryOp, T, const T*, T*, size_t);   \
  template void UnaryRow(UnaryOp, const T*, T*, size_t);              \
  template ComputeType<T> SumRow(const T*, size_t);                   \
  template ComputeType<T> SumOfSquaresRow(const T*, size_t);          \
  template ComputeType<T> MaxRow(const T*, size_t)
ADDNORM_INSTANTIATE(float);
ADDNORM_INSTANTIATE(double);
ADDNORM_INSTANTIATE(Half);
ADDNORM_INSTANTIATE(BFloat16);
#undef ADDNORM_INSTANTIATE

void WidenRow(const Half* a, float* out, size_t n) {
  AllFunctions().widen_half(a, out, n);
}
void WidenRow(const BFloat16* a, float* out, size_t n) {
  AllFunctions().widen_bfloat16(a, out, n);
}
void NarrowRow(const float* a, Half* out, size_t n) {
  AllFunctions().narrow_half(a, out, n);
}
void NarrowRow(const float* a, BFloat16* out, size_t n) {
  AllFunctions().narrow_bfloat16(a, out, n);
}
void RoundRow(const float* a, Half* out, size_t n) {
  AllFunctions().round_half(a, out, n);
}
void RoundRow(const float* a, BFloat16* out, size_t n) {
  AllFunctions().round_bfloat16(a, out, n);
}

void StreamRow(const void* from, void* to, size_t bytes) {
  AllFunctions().stream(from, to, bytes);
}
void FlushStreams() { hwy::FlushStream(); }

}  // namespace addnorm::runtime
#endif  // HWY_ONCE
