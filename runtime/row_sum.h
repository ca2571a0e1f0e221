// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The order in which a row is summed, which is part of the numeric contract:
// element i goes to lane i mod 32, and the lanes are combined by halving, lane
// k += lane k+h for h = 16, 8, 4, 2, 1. One operation a rounding, nothing is
// fused, so scalar code and every SIMD width give the same bits.
//
// This is the contract as plain loops, which compilers vectorise; kernels with
// intrinsics must give its bits. It is not for sums over other axes.
//
//   float sum = RowSum<float>(n, [&](int64_t i) { return x[i] * x[i]; });
#ifndef ADDNORM_RUNTIME_ROW_SUM_H_
#define ADDNORM_RUNTIME_ROW_SUM_H_

#include <algorithm>
#include <cstdint>

#include "runtime/wrapping.h"

namespace addnorm::runtime {

inline constexpr int kRowLanes = 32;

// fold(lane, load(i)) in the order of the contract. The lanes start as the
// identity: for a sum +0, to which adding the padding of the tail changes
// nothing, so that it is left out.
template <typename T, typename Fold, typename Load>
T FoldRow(int64_t n, T identity, Fold fold, Load load) {
  T lanes[kRowLanes];
  std::fill_n(lanes, kRowLanes, identity);
  int64_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes) {
    for (int lane = 0; lane < kRowLanes; ++lane)
      lanes[lane] = fold(lanes[lane], load(i + lane));
  }
  for (int lane = 0; i + lane < n; ++lane)
    lanes[lane] = fold(lanes[lane], load(i + lane));
  for (int half = kRowLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane)
      lanes[lane] = fold(lanes[lane], lanes[lane + half]);
  }
  return lanes[0];
}

// The sum of load(0) … load(n - 1), which have type T.
template <typename T, typename Load>
T RowSum(int64_t n, Load load) {
  return FoldRow<T>(
      n, T{0}, [](T a, T b) { return WrappingAdd(a, b); }, load);
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_ROW_SUM_H_
