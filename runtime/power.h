// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Powers as Pow computes them, for all who promise the same bits.
//
// The exponent 2 is x * x, which every spelling of a norm relies on. All other
// exponents, 0.5 and -0.5 among them, are the C library's pow in the type
// given: not the correctly rounded square root, and possibly another last bit
// under another C library.
//
//   const float inverse = Power(v, -0.5f);
#ifndef ADDNORM_RUNTIME_POWER_H_
#define ADDNORM_RUNTIME_POWER_H_

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace addnorm::runtime {

// Modulo 2^64. Negative exponents: the truncated quotient 1 / base^n, and 0
// for the base 0, which has none.
inline int64_t IntegerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<int64_t>(result);
}

// T: float, double or int64_t.
template <typename T>
T Power(T base, T exponent) {
  if constexpr (std::is_integral_v<T>) {
    return IntegerPower(base, exponent);
  } else {
    return exponent == T{2} ? base * base : std::pow(base, exponent);
  }
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_POWER_H_
