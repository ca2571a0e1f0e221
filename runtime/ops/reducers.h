// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What each Reduce* operator does to an element, to two partial results, and to
// the final one (reduce_loop.h runs them). A is the type it computes in.
//
// Row is the kernel, of floating-point elements, that folds as many Loads.
//
// A NaN among the elements makes ReduceMax and ReduceMin NaN. Integers wrap
// around.
//
//   ReduceAll<float>(plan, reducers::Mean<float>(), x, y, threads);
#ifndef ADDNORM_RUNTIME_OPS_REDUCERS_H_
#define ADDNORM_RUNTIME_OPS_REDUCERS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "runtime/exponential.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/wrapping.h"

namespace addnorm::runtime::reducers {

// What all sums have in common.
template <typename A>
struct Adding {
  static A Identity() { return A{0}; }
  static A Fold(A a, A b) { return WrappingAdd(a, b); }
  static A Finish(A a, int64_t) { return a; }
};

template <typename A>
struct Sum : Adding<A> {
  static A Load(A x, int64_t) { return x; }
  template <typename T>
  static A Row(const T* x, size_t n) {
    return SumRow(x, n);
  }
};

template <typename A>
struct Mean : Sum<A> {
  static A Finish(A a, int64_t n) { return a / static_cast<A>(n); }
};

template <typename A>
struct SumSquare : Adding<A> {
  static A Load(A x, int64_t) { return WrappingMultiply(x, x); }
  template <typename T>
  static A Row(const T* x, size_t n) {
    return SumOfSquaresRow(x, n);
  }
};

template <typename A>
struct L1 : Adding<A> {
  static A Load(A x, int64_t) {
    if constexpr (std::is_floating_point_v<A>) {
      return std::fabs(x);
    } else {
      return x < A{0} ? WrappingMultiply(x, static_cast<A>(-1)) : x;
    }
  }
};

template <typename A>
struct L2 : SumSquare<A> {
  static A Finish(A a, int64_t) {
    if constexpr (std::is_floating_point_v<A>) {
      return std::sqrt(a);
    } else {
      return static_cast<A>(
          std::sqrt(static_cast<double>(a < A{0} ? A{0} : a)));
    }
  }
};

template <typename A>
struct LogSum : Sum<A> {
  static A Finish(A a, int64_t) { return std::log(a); }
};

template <typename A>
struct Product {
  static A Identity() { return A{1}; }
  static A Load(A x, int64_t) { return x; }
  static A Fold(A a, A b) { return WrappingMultiply(a, b); }
  static A Finish(A a, int64_t) { return a; }
};

template <typename A>
struct Max {
  static A Identity() {
    if constexpr (std::is_floating_point_v<A>) {
      return -std::numeric_limits<A>::infinity();
    } else {
      return std::numeric_limits<A>::lowest();
    }
  }
  static A Load(A x, int64_t) { return x; }
  template <typename T>
  static A Row(const T* x, size_t n) {
    return MaxRow(x, n);
  }
  static A Fold(A a, A b) {
    if constexpr (std::is_floating_point_v<A>) {
      return b > a || b != b ? b : a;
    } else {
      return b > a ? b : a;
    }
  }
  static A Finish(A a, int64_t) { return a; }
};

template <typename A>
struct Min {
  static A Identity() {
    if constexpr (std::is_floating_point_v<A>) {
      return std::numeric_limits<A>::infinity();
    } else {
      return std::numeric_limits<A>::max();
    }
  }
  static A Load(A x, int64_t) { return x; }
  static A Fold(A a, A b) {
    if constexpr (std::is_floating_point_v<A>) {
      return b < a || b != b ? b : a;
    } else {
      return b < a ? b : a;
    }
  }
  static A Finish(A a, int64_t) { return a; }
};

// The sum of e^(x - shift), which cannot overflow where shift is the largest
// element; the caller adds the shift to the logarithm. Infinite shifts are
// taken as 0: then the sum is 0 or infinite, as it should be.
template <typename A>
struct SumExp : Adding<A> {
  const A* shifts = nullptr;  // one a result
  A Load(A x, int64_t output) const { return Exponential(x - shifts[output]); }
};

// The mean of squared distances from the results' means.
template <typename A>
struct Variance : Adding<A> {
  const A* means = nullptr;  // one a result
  A Load(A x, int64_t output) const {
    const A distance = x - means[output];
    return distance * distance;
  }
  static A Finish(A a, int64_t n) { return Mean<A>::Finish(a, n); }
};

}  // namespace addnorm::runtime::reducers

#endif  // ADDNORM_RUNTIME_OPS_REDUCERS_H_
