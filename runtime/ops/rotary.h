// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding of one row (one head of one token): pairs of
// elements turned by the angles of the token's position.
//
// Numbers: both products and their sum in float, rounded once per element.
//
//   RotateRow(rotation, x, cos + position * half, sin + position * half, y);
#ifndef ADDNORM_RUNTIME_OPS_ROTARY_H_
#define ADDNORM_RUNTIME_OPS_ROTARY_H_

#include <algorithm>
#include <cstdint>

#include "runtime/element_types.h"

namespace addnorm::runtime {

struct Rotation {
  int64_t size = 0;  // of the row
  int64_t half = 0;  // pairs that are turned; the rest is copied
  // Pairs are (0, 1), (2, 3), …, not (0, half), (1, half + 1), …
  bool interleaved = false;
};

// y may be x.
template <typename T>
void RotateRow(const Rotation& rotation, const T* x, const T* cos, const T* sin,
               T* y) {
  const int64_t step = rotation.interleaved ? 2 : 1;
  const int64_t apart = rotation.interleaved ? 1 : rotation.half;
  for (int64_t i = 0; i < rotation.half; ++i) {
    const auto c = Widen(cos[i]), s = Widen(sin[i]);
    const auto re = Widen(x[i * step]), im = Widen(x[i * step + apart]);
    y[i * step] = Rounded<T>(c * re - s * im);
    y[i * step + apart] = Rounded<T>(s * re + c * im);
  }
  if (x != y) {
    std::copy(x + 2 * rotation.half, x + rotation.size, y + 2 * rotation.half);
  }
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_ROTARY_H_
