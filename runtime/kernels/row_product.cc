// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/row_product.h"

#include <algorithm>

#include "runtime/kernels/highway_targets.h"
#include "runtime/row_sum.h"
// After the above.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/row_product.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "runtime/kernels/elements-inl.h"

// What each target provides: pointers to its functions for elements of T.
#ifndef ADDNORM_RUNTIME_KERNELS_PRODUCT_FUNCTIONS
#define ADDNORM_RUNTIME_KERNELS_PRODUCT_FUNCTIONS
namespace addnorm::runtime {

template <typename T>
struct ProductFunctions {
  using Product = void (*)(const float* a, const T* b, int64_t k, int64_t ldb,
                           int64_t width, float* c);
  Product matrix, transposed;
};

struct AllProductFunctions {
  ProductFunctions<float> of_float;
  ProductFunctions<Half> of_half;
  ProductFunctions<BFloat16> of_bfloat16;
};

}  // namespace addnorm::runtime
#endif  // ADDNORM_RUNTIME_KERNELS_PRODUCT_FUNCTIONS

HWY_BEFORE_NAMESPACE();
namespace addnorm::runtime::HWY_NAMESPACE {
namespace {

// Eight rows of b: as many as the prefetchers of current processors follow.
constexpr int64_t kGroup = 8;

// The sum of eight products in one column or vector of columns.
template <typename V, typename Product>
HWY_INLINE V GroupSum(Product product) {
  const V s01 = hn::Add(product(0), product(1));
  const V s23 = hn::Add(product(2), product(3));
  const V s45 = hn::Add(product(4), product(5));
  const V s67 = hn::Add(product(6), product(7));
  return hn::Add(hn::Add(s01, s23), hn::Add(s45, s67));
}

template <typename T, class D>
HWY_INLINE void AddGroup(D d, const float* a, const T* b, int64_t ldb,
                         float* c) {
  using V = hn::Vec<D>;
  const V sum = GroupSum<V>([&](int p) HWY_ATTR {
    return hn::Mul(hn::Set(d, a[p]), LoadElements(d, b + p * ldb));
  });
  hn::StoreU(hn::Add(hn::LoadU(d, c), sum), d, c);
}

template <typename T, class D>
HWY_INLINE void AddRow(D d, float a, const T* b, float* c) {
  const auto product = hn::Mul(hn::Set(d, a), LoadElements(d, b));
  hn::StoreU(hn::Add(hn::LoadU(d, c), product), d, c);
}

// Calls f(tag, j) for vectors that cover [0, width).
template <typename F>
HWY_INLINE void ForVectors(int64_t width, F f) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + lanes <= width; j += lanes) f(d, j);
  for (; j < width; ++j) f(one, j);
}

template <typename T>
void Matrix(const float* a, const T* b, int64_t k, int64_t ldb, int64_t width,
            float* c) {
  std::fill_n(c, width, 0.0F);
  int64_t p = 0;
  for (; p + kGroup <= k; p += kGroup) {
    const T* rows = b + p * ldb;
    ForVectors(width, [&](auto d, int64_t j) HWY_ATTR {
      AddGroup(d, a + p, rows + j, ldb, c + j);
    });
  }
  for (; p < k; ++p) {
    ForVectors(width, [&](auto d, int64_t j) HWY_ATTR {
      AddRow(d, a[p], b + p * ldb + j, c + j);
    });
  }
}

// The lanes of the contract in registers, however wide.
template <typename T>
HWY_INLINE float Dot(const float* a, const T* b, int64_t k) {
  const hn::CappedTag<float, kRowLanes> d;
  constexpr size_t kWidth = hn::MaxLanes(d);
  constexpr size_t kVectors = kRowLanes / kWidth;
  hn::Vec<decltype(d)> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + kRowLanes <= k; i += kRowLanes) {
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = static_cast<size_t>(i) + v * kWidth;
      sums[v] = hn::Add(sums[v],
                        hn::Mul(hn::LoadU(d, a + at), LoadElements(d, b + at)));
    }
  }
  float lanes[kRowLanes];
  for (size_t v = 0; v < kVectors; ++v)
    hn::StoreU(sums[v], d, lanes + v * kWidth);
  for (int lane = 0; i + lane < k; ++lane)
    lanes[lane] += a[i + lane] * Widen(b[i + lane]);
  for (int half = kRowLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

template <typename T>
void Transposed(const float* a, const T* b, int64_t k, int64_t ldb,
                int64_t rows, float* c) {
  for (int64_t j = 0; j < rows; ++j) c[j] = Dot(a, b + j * ldb, k);
}

template <typename T>
ProductFunctions<T> FunctionsOf() {
  return {Matrix<T>, Transposed<T>};
}

AllProductFunctions AllFunctions() {
  return {FunctionsOf<float>(), FunctionsOf<Half>(), FunctionsOf<BFloat16>()};
}

}  // namespace
}  // namespace addnorm::runtime::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace addnorm::runtime {
namespace {

HWY_EXPORT(AllFunctions);

template <typename T>
ProductFunctions<T> Functions() {
  static const AllProductFunctions functions =
      HWY_DYNAMIC_DISPATCH(AllFunctions)();
  if constexpr (std::is_same_v<T, float>) {
    return functions.of_float;
  } else if constexpr (std::is_same_v<T, Half>) {
    return functions.of_half;
  } else {
    return functions.of_bfloat16;
  }
}

}  // namespace

template <typename T>
void RowTimesMatrix(const float* a, const T* b, int64_t k, int64_t ldb,
                    int64_t width, float* c) {
  Functions<T>().matrix(a, b, k, ldb, width, c);
}

template <typename T>
void RowTimesTransposed(const float* a, const T* b, int64_t k, int64_t ldb,
                        int64_t rows, float* c) {
  Functions<T>().transposed(a, b, k, ldb, rows, c);
}

#define INSTANTIATE(T)                                                       \
  template void RowTimesMatrix(const float*, const T*, int64_t, int64_t,     \
                               int64_t, float*);                             \
  template void RowTimesTransposed(const float*, const T*, int64_t, int64_t, \
                                   int64_t, float*);
INSTANTIATE(float)
INSTANTIATE(Half)
INSTANTIATE(BFloat16)
#undef INSTANTIATE

}  // namespace addnorm::runtime
#endif  // HWY_ONCE
