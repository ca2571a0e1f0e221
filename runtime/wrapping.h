// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of numbers of any type, as the operators of ONNX mean it: integers
// wrap around. C++ leaves that undefined for signed types, and promotes small
// unsigned ones to int, whose product may overflow.
//
// Floating-point types stay what they are; half types are widened before.
//
//   sum = WrappingAdd(sum, WrappingMultiply(x, x));
#ifndef ADDNORM_RUNTIME_WRAPPING_H_
#define ADDNORM_RUNTIME_WRAPPING_H_

#include <cstdint>
#include <type_traits>

namespace addnorm::runtime {

// The type in which numbers of type T are added and multiplied.
template <typename T>
using Wrapping =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<(sizeof(T) < 8), uint32_t, uint64_t>,
                       T>;

template <typename T>
T WrappingAdd(T a, T b) {
  using W = Wrapping<T>;
  return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
}

template <typename T>
T WrappingSubtract(T a, T b) {
  using W = Wrapping<T>;
  return static_cast<T>(static_cast<W>(a) - static_cast<W>(b));
}

template <typename T>
T WrappingMultiply(T a, T b) {
  using W = Wrapping<T>;
  return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_WRAPPING_H_
