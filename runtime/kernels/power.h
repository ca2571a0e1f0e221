// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Pow of one element, as every op and kernel computes it.
//
//   float square = Power(x, 2.0f);  // x * x
#ifndef ADDNORM_RUNTIME_KERNELS_POWER_H_
#define ADDNORM_RUNTIME_KERNELS_POWER_H_

#include <cmath>

namespace addnorm::runtime {

// T is float or double, the type in which the base's op computes.
template <typename T>
T Power(T base, T exponent) {
  if (exponent == T{2}) return base * base;
  return std::pow(base, exponent);
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_POWER_H_
