// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The loops of which all row kernels are made, for one SIMD target: element by
// element over a row (MapRow), and the sum over a row in 32 lanes (RowSum). An
// op on its own and the same op within a fused kernel use the same loop with
// the same lambda, so they give the same bits.
//
// A lambda takes and gives whole vectors and bears HWY_ATTR. The loops call it
// on the last, incomplete vector too, with zeros beyond the row.
#if defined(ADDNORM_RUNTIME_KERNELS_ROW_OPS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ADDNORM_RUNTIME_KERNELS_ROW_OPS_INL_H_
#undef ADDNORM_RUNTIME_KERNELS_ROW_OPS_INL_H_
#else
#define ADDNORM_RUNTIME_KERNELS_ROW_OPS_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "runtime/kernels/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace addnorm::runtime::HWY_NAMESPACE {

inline constexpr size_t kSumLanes = 32;

// ---- from memory

// The lines that a loop comes to after this step. With 2 bytes an element there
// is so much work for each line that too few of them are asked for at a time:
// rows from memory take a quarter longer without. Those of 4 or 8 bytes gain
// nothing, and lose some percent where they are in the caches.
template <typename T>
HWY_INLINE void Prefetch(const T* elements, size_t count) {
  if constexpr (sizeof(T) == 2) {
    constexpr size_t kAhead = 2048, kLine = 64;
    // Not a pointer: it may be past the end, where nothing is read.
    const uintptr_t ahead = reinterpret_cast<uintptr_t>(elements) + kAhead;
    for (size_t at = 0; at < count * sizeof(T); at += kLine)
      hwy::Prefetch(reinterpret_cast<const char*>(ahead + at));
  }
}

// ---- out[i] = f(a[i], b[i])

// How the result of a lambda is stored: a new value of an op, or a value
// that only changes its type and keeps the payload of a NaN.
enum class Result { kComputed, kConverted };

template <Result kResult, typename Out, class D>
HWY_INLINE hn::Vec<D> ToStore(D d, hn::Vec<D> v) {
  if constexpr (kResult == Result::kComputed) {
    return CanonicalLanes(d, v);
  } else {
    return QuietForStore<Out>(d, v);
  }
}

// Where all are BFloat16, a step takes them in pairs (LoadPairs).
template <typename... Ts>
constexpr bool kInPairs = (std::is_same_v<Ts, BFloat16> && ...);

template <typename... Ts>
constexpr size_t kElementsOfStep = hn::MaxLanes(hn::ScalableTag<float>()) *
                                   (kInPairs<Ts...> ? 2 : 1);
template <>
constexpr size_t kElementsOfStep<double> =
    hn::MaxLanes(hn::ScalableTag<double>());
template <typename... Ts>
constexpr size_t kElementsOfStep<double, Ts...> = kElementsOfStep<double>;

// One step at each offset of the row, the last with a copy of what is left.
//
// step(a, b, out) is given pointers; operands a and b may be the same.
template <typename A, typename B, typename Out, typename Step>
HWY_INLINE void ForSteps(size_t n, const A* a, const B* b, Out* out,
                         Step step) {
  constexpr size_t kStep = kElementsOfStep<A, B, Out>;
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    Prefetch(a + i, kStep);
    Prefetch(b + i, kStep);
    step(a + i, b + i, out + i);
  }
  if (i == n) return;
  A last_a[kStep] = {};
  B last_b[kStep] = {};
  Out last_out[kStep];
  std::memcpy(last_a, a + i, (n - i) * sizeof(A));
  std::memcpy(last_b, b + i, (n - i) * sizeof(B));
  step(last_a, last_b, last_out);
  std::memcpy(out + i, last_out, (n - i) * sizeof(Out));
}

// out may be a or b where elements are of the same size.
template <Result kResult = Result::kComputed, typename A, typename B,
          typename Out, typename F>
HWY_INLINE void MapRows(size_t n, const A* a, const B* b, Out* out, F f) {
  const WideTag<A> d;
  const auto result = [d, &f](auto va, auto vb) HWY_ATTR {
    return ToStore<kResult, Out>(d, f(va, vb));
  };
  ForSteps(n, a, b, out, [&](const A* pa, const B* pb, Out* to) HWY_ATTR {
    if constexpr (kInPairs<A, B, Out>) {
      const auto va = LoadPairs(d, pa), vb = LoadPairs(d, pb);
      StorePairs(d, {result(va.even, vb.even), result(va.odd, vb.odd)}, to);
    } else {
      StoreElements(d, result(LoadElements(d, pa), LoadElements(d, pb)), to);
    }
  });
}

template <Result kResult = Result::kComputed, typename A, typename Out,
          typename F>
HWY_INLINE void MapRow(size_t n, const A* a, Out* out, F f) {
  const WideTag<A> d;
  const auto result = [d, &f](auto v)
                          HWY_ATTR { return ToStore<kResult, Out>(d, f(v)); };
  ForSteps(n, a, a, out, [&](const A* from, const A*, Out* to) HWY_ATTR {
    if constexpr (kInPairs<A, Out>) {
      const auto v = LoadPairs(d, from);
      StorePairs(d, {result(v.even), result(v.odd)}, to);
    } else {
      StoreElements(d, result(LoadElements(d, from)), to);
    }
  });
}

// ---- sums

// The 32 lanes of one sum: element i of the row is added to lane i mod 32.
// Elements in pairs have those of even index in one vector, of odd index in the
// next; else vectors are in order.
template <class D, bool kPairs>
struct SumLanes {
  static constexpr size_t kStep = hn::MaxLanes(D());
  static constexpr size_t kVectors = kSumLanes / kStep;

  HWY_INLINE SumLanes() {
    for (size_t k = 0; k < kVectors; ++k) lanes[k] = hn::Zero(D());
  }

  // lane k += lane k + h for h = 16, 8, 4, 2, 1
  HWY_INLINE hn::TFromD<D> Total() {
    constexpr size_t kLast = kPairs ? 2 : 1;
    for (size_t h = kVectors / 2; h >= kLast; h /= 2) {
      for (size_t k = 0; k < h; ++k) lanes[k] = hn::Add(lanes[k], lanes[k + h]);
    }
    if constexpr (kPairs) return Halve(lanes[0]) + Halve(lanes[1]);
    return Halve(lanes[0]);
  }

  static HWY_INLINE hn::TFromD<D> Halve(hn::Vec<D> v) {
    HWY_ALIGN hn::TFromD<D> last[kStep];
    hn::Store(v, D(), last);
    for (size_t h = kStep / 2; h > 0; h /= 2) {
      for (size_t k = 0; k < h; ++k) last[k] += last[k + h];
    }
    return last[0];
  }

  hn::Vec<D> lanes[kVectors];
};

template <typename T>
using SumLanesOf = SumLanes<WideTag<T>, kInPairs<T>>;

// add(a, b, out) for each 32 elements, the last with zeros beyond the row; out
// may be nullptr.
template <typename T, typename Add>
HWY_INLINE void ForBlocks(size_t n, const T* a, const T* b, T* out, Add add) {
  size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    Prefetch(a + i, kSumLanes);
    Prefetch(b + i, kSumLanes);
    add(a + i, b + i, out == nullptr ? nullptr : out + i);
  }
  if (i == n) return;
  T last_a[kSumLanes] = {}, last_b[kSumLanes] = {}, last_out[kSumLanes];
  std::memcpy(last_a, a + i, (n - i) * sizeof(T));
  std::memcpy(last_b, b + i, (n - i) * sizeof(T));
  add(last_a, last_b, last_out);
  if (out != nullptr) std::memcpy(out + i, last_out, (n - i) * sizeof(T));
}

// f(k, v) for each vector v of 32 elements, which goes to lanes[k] of SumLanes.
template <typename T, typename F>
HWY_INLINE void ForVectorsOfBlock(const T* from, F f) {
  const WideTag<T> d;
  using Sum = SumLanesOf<T>;
  for (size_t k = 0; k < Sum::kVectors; ++k) {
    if constexpr (kInPairs<T>) {
      const auto v = LoadPairs(d, from + k * Sum::kStep);
      f(k, v.even);
      f(++k, v.odd);
    } else {
      f(k, LoadElements(d, from + k * Sum::kStep));
    }
  }
}

// Sum of f(a[i]) over the row, f(0) being 0.
template <typename T, typename F>
HWY_INLINE ComputeType<T> RowSum(size_t n, const T* a, F f) {
  SumLanesOf<T> sum;
  const auto add = [&](size_t k, hn::Vec<WideTag<T>> v)
                       HWY_ATTR { sum.lanes[k] = hn::Add(sum.lanes[k], f(v)); };
  const auto block = [&](const T* from, const T*, T*)
                         HWY_ATTR { ForVectorsOfBlock(from, add); };
  ForBlocks(n, a, a, static_cast<T*>(nullptr), block);
  return sum.Total();
}

// The same, of f(x[i]) where x[i] = g(a[i], b[i]) is stored; x may be a or b.
// f gives a NaN for a NaN.
template <typename T, typename G, typename F>
HWY_INLINE ComputeType<T> MapAndSumRows(size_t n, const T* a, const T* b, T* x,
                                        G g, F f) {
  const WideTag<T> d;
  using Sum = SumLanesOf<T>;
  Sum sum;
  const auto add = [&](size_t k, hn::Vec<WideTag<T>> v) HWY_ATTR {
    sum.lanes[k] = hn::Add(sum.lanes[k], f(RoundLanes<T>(d, v)));
  };
  const auto block = [&](const T* pa, const T* pb, T* to) HWY_ATTR {
    for (size_t k = 0; k < Sum::kVectors; ++k) {
      const size_t at = k * Sum::kStep;
      if constexpr (kInPairs<T>) {
        const auto va = LoadPairs(d, pa + at), vb = LoadPairs(d, pb + at);
        const EvenOdd<WideTag<T>> v = {g(va.even, vb.even), g(va.odd, vb.odd)};
        StorePairs(d, v, to + at);
        add(k, v.even);
        add(++k, v.odd);
      } else {
        const auto v = g(LoadElements(d, pa + at), LoadElements(d, pb + at));
        StoreElements(d, v, to + at);
        add(k, v);
      }
    }
  };
  ForBlocks(n, a, b, x, block);
  const ComputeType<T> total = sum.Total();
  // NaNs are rare, and the sum tells: they are made canonical afterwards.
  if (total != total) MapRow(n, x, x, [](auto v) HWY_ATTR { return v; });
  return total;
}

}  // namespace addnorm::runtime::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ADDNORM_RUNTIME_KERNELS_ROW_OPS_INL_H_
