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

#include <cstring>

#include "hwy/highway.h"
#include "runtime/kernels/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace addnorm::runtime::HWY_NAMESPACE {

inline constexpr size_t kSumLanes = 32;

// ---- out[i] = f(a[i], b[i])

// How the result of a lambda is stored: a new value of an op, or a value
// that only changes its type and keeps the payload of a NaN.
enum class Result { kComputed, kConverted };

template <Result kResult, class D, typename Out>
HWY_INLINE void StoreResult(D d, hn::Vec<D> v, Out* out) {
  if constexpr (kResult == Result::kComputed) {
    StoreElements(d, CanonicalLanes(d, v), out);
  } else {
    StoreElements(d, QuietForStore<Out>(d, v), out);
  }
}

// out may be a or b where elements are of the same size.
template <Result kResult = Result::kComputed, typename A, typename B,
          typename Out, typename F>
HWY_INLINE void MapRows(size_t n, const A* a, const B* b, Out* out, F f) {
  const WideTag<A> d;
  constexpr size_t kStep = hn::MaxLanes(d);
  const auto map = [&](const A* from_a, const B* from_b, Out* to) HWY_ATTR {
    StoreResult<kResult>(d, f(LoadElements(d, from_a), LoadElements(d, from_b)),
                         to);
  };
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) map(a + i, b + i, out + i);
  if (i == n) return;
  A last_a[kStep] = {};
  B last_b[kStep] = {};
  Out last_out[kStep];
  std::memcpy(last_a, a + i, (n - i) * sizeof(A));
  std::memcpy(last_b, b + i, (n - i) * sizeof(B));
  map(last_a, last_b, last_out);
  std::memcpy(out + i, last_out, (n - i) * sizeof(Out));
}

template <Result kResult = Result::kComputed, typename A, typename Out,
          typename F>
HWY_INLINE void MapRow(size_t n, const A* a, Out* out, F f) {
  const WideTag<A> d;
  constexpr size_t kStep = hn::MaxLanes(d);
  const auto map = [&](const A* from, Out* to) HWY_ATTR {
    StoreResult<kResult>(d, f(LoadElements(d, from)), to);
  };
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) map(a + i, out + i);
  if (i == n) return;
  A last_a[kStep] = {};
  Out last_out[kStep];
  std::memcpy(last_a, a + i, (n - i) * sizeof(A));
  map(last_a, last_out);
  std::memcpy(out + i, last_out, (n - i) * sizeof(Out));
}

// ---- sums

// The 32 lanes of one sum: element i of the row is added to lane i mod 32.
template <class D>
struct SumLanes {
  static constexpr size_t kStep = hn::MaxLanes(D());
  static constexpr size_t kVectors = kSumLanes / kStep;

  HWY_INLINE SumLanes() {
    for (size_t k = 0; k < kVectors; ++k) lanes[k] = hn::Zero(D());
  }

  // lane k += lane k + h for h = 16, 8, 4, 2, 1
  HWY_INLINE hn::TFromD<D> Total() {
    for (size_t h = kVectors / 2; h > 0; h /= 2) {
      for (size_t k = 0; k < h; ++k) lanes[k] = hn::Add(lanes[k], lanes[k + h]);
    }
    HWY_ALIGN hn::TFromD<D> last[kStep];
    hn::Store(lanes[0], D(), last);
    for (size_t h = kStep / 2; h > 0; h /= 2) {
      for (size_t k = 0; k < h; ++k) last[k] += last[k + h];
    }
    return last[0];
  }

  hn::Vec<D> lanes[kVectors];
};

// Adds the next 32 elements, whose vectors are vectors(0), vectors(kStep), ….
template <class D, typename Vectors>
HWY_INLINE void AddBlock(SumLanes<D>& sum, Vectors vectors) {
  for (size_t k = 0; k < SumLanes<D>::kVectors; ++k) {
    sum.lanes[k] = hn::Add(sum.lanes[k], vectors(k * SumLanes<D>::kStep));
  }
}

// Sum of f(a[i]) over the row, f(0) being 0.
template <typename A, typename F>
HWY_INLINE ComputeType<A> RowSum(size_t n, const A* a, F f) {
  const WideTag<A> d;
  SumLanes<WideTag<A>> sum;
  const auto add = [&](const A* from) HWY_ATTR {
    AddBlock(sum,
             [&](size_t k) HWY_ATTR { return f(LoadElements(d, from + k)); });
  };
  size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) add(a + i);
  if (i < n) {
    A last[kSumLanes] = {};
    std::memcpy(last, a + i, (n - i) * sizeof(A));
    add(last);
  }
  return sum.Total();
}

// The same, of f(x[i]) where x[i] = g(a[i], b[i]) is stored; x may be a or b.
template <typename T, typename G, typename F>
HWY_INLINE ComputeType<T> MapAndSumRows(size_t n, const T* a, const T* b, T* x,
                                        G g, F f) {
  const WideTag<T> d;
  SumLanes<WideTag<T>> sum;
  const auto add = [&](const T* from_a, const T* from_b, T* to) HWY_ATTR {
    AddBlock(sum, [&](size_t k) HWY_ATTR {
      const auto v = CanonicalLanes(
          d, g(LoadElements(d, from_a + k), LoadElements(d, from_b + k)));
      StoreElements(d, v, to + k);
      return f(RoundLanes<T>(d, v));
    });
  };
  size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) add(a + i, b + i, x + i);
  if (i < n) {
    T last_a[kSumLanes] = {}, last_b[kSumLanes] = {}, last_x[kSumLanes];
    std::memcpy(last_a, a + i, (n - i) * sizeof(T));
    std::memcpy(last_b, b + i, (n - i) * sizeof(T));
    add(last_a, last_b, last_x);
    std::memcpy(x + i, last_x, (n - i) * sizeof(T));
  }
  return sum.Total();
}

}  // namespace addnorm::runtime::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ADDNORM_RUNTIME_KERNELS_ROW_OPS_INL_H_
