// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The softmax of one row of attention scores, in place.
//
// It is not the operator Softmax: it has a sink, the rounding that Attention's
// softmax_precision asks for, and a row of -inf becomes zeros.
//
//   SoftmaxRow<float, float>(scores, count, /*sink=*/nullptr);
#ifndef ADDNORM_RUNTIME_OPS_SOFTMAX_ROW_H_
#define ADDNORM_RUNTIME_OPS_SOFTMAX_ROW_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/element_types.h"

namespace addnorm::runtime {

// Scores of type C become probabilities; P is the softmax's precision: scores
// are rounded to P first, probabilities last, and between them P's compute type
// is used. The sink is one more score, which only adds to the denominator,
// whose sum is in 32 lanes.
template <typename C, typename P>
void SoftmaxRow(C* row, int64_t count, const float* sink) {
  using S = ComputeType<P>;
  constexpr int64_t kLanes = 32;
  constexpr S kLowest = -std::numeric_limits<S>::infinity();
  S max = sink == nullptr ? kLowest : static_cast<S>(*sink);
  for (int64_t i = 0; i < count; ++i) {
    const S score = Widen(Narrow<P>(static_cast<S>(row[i])));
    row[i] = static_cast<C>(score);
    max = score > max ? score : max;
  }
  if (max == kLowest) max = 0;  // else -inf - -inf would be a NaN
  S lanes[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) {
    const S power = std::exp(static_cast<S>(row[i]) - max);
    row[i] = static_cast<C>(power);
    lanes[i % kLanes] += power;
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  }
  S sum = lanes[0];
  if (sink != nullptr) sum += std::exp(static_cast<S>(*sink) - max);
  if (sum == 0) sum = 1;
  for (int64_t i = 0; i < count; ++i) {
    row[i] = static_cast<C>(Widen(Narrow<P>(static_cast<S>(row[i]) / sum)));
  }
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_SOFTMAX_ROW_H_
