// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// An element of one floating-point type as another, rounded once to nearest
// even: double to a half type too, where the way through float would round
// twice. A NaN stays a NaN.
//
//   Half h = CastElement<Half>(1e-3);
#ifndef ADDNORM_RUNTIME_KERNELS_CAST_ELEMENT_H_
#define ADDNORM_RUNTIME_KERNELS_CAST_ELEMENT_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "runtime/element_types.h"

namespace addnorm::runtime {

// Towards zero, and then with an odd last bit unless exact. It says "more than
// the even neighbour, less than the next", so that a further rounding to half
// the bits comes out as if it were the first.
inline float FloatRoundedToOdd(double value) {
  const float nearest = static_cast<float>(value);
  if (!(static_cast<double>(nearest) != value) || std::isnan(value))
    return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

template <typename To, typename From>
To CastElement(From value) {
  if constexpr (kIsHalfType<To> && std::is_same_v<From, double>) {
    return Narrow<To>(FloatRoundedToOdd(value));
  } else {
    return Narrow<To>(static_cast<ComputeType<To>>(Widen(value)));
  }
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_CAST_ELEMENT_H_
