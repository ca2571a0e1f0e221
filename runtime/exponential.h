// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// e^x for loops over rows: plain arithmetic, so that compilers vectorise it and
// every machine gives the same bits, which the C library's does not promise.
//
// Within 2 units in the last place; +Inf, -Inf, NaN and denormal results as
// usual. Not for the operator Exp of double, where the library's is as good.
//
//   for (int64_t i = 0; i < n; ++i) y[i] = Exponential(x[i] - maximum);
#ifndef ADDNORM_RUNTIME_EXPONENTIAL_H_
#define ADDNORM_RUNTIME_EXPONENTIAL_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace addnorm::runtime {

// e^x = 2^n * e^r with |r| <= ln(2)/2, the latter by its series.
inline float Exponential(float x) {
  // Beyond 130 the result is 0 or infinite. The comparison is of integers,
  // since compilers do not vectorise those of floats, which may trap. A NaN
  // stays.
  constexpr int32_t kLargest = std::bit_cast<int32_t>(130.0F);
  constexpr int32_t kInfinite = 0x7f800000;
  const int32_t bits = std::bit_cast<int32_t>(x);
  const int32_t magnitude = bits & 0x7fffffff;
  const int32_t bounded =
      magnitude > kLargest && magnitude <= kInfinite ? kLargest : magnitude;
  x = std::bit_cast<float>(bounded | (bits ^ magnitude));
  // Adding 1.5 * 2^23 rounds to an integer, which the low bits then hold.
  constexpr float kShift = 0x1.8p23F;
  const float shifted = x * 0x1.715476p0F + kShift;
  const float n = shifted - kShift;
  // ln(2) in two parts; the first is short enough for n times it to be exact.
  float r = x - n * 0x1.62e4p-1F;
  r = r - n * 0x1.7f7d1cp-20F;
  float series = 1.0F / 5040;
  series = series * r + 1.0F / 720;
  series = series * r + 1.0F / 120;
  series = series * r + 1.0F / 24;
  series = series * r + 1.0F / 6;
  series = series * r + 0.5F;
  series = series * r + 1.0F;
  series = series * r + 1.0F;
  // 2^n may be out of range where the result is not: two factors.
  const int32_t exponent = static_cast<int32_t>(
      std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kShift));
  const auto power_of_two = [](int32_t e) {
    return std::bit_cast<float>((static_cast<uint32_t>(e) + 127U) << 23);
  };
  const int32_t half = exponent >> 1;
  return series * power_of_two(half) * power_of_two(exponent - half);
}

inline double Exponential(double x) { return std::exp(x); }

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_EXPONENTIAL_H_
