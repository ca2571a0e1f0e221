// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The windows that slide over the spatial axes of convolutions and pooling:
// their size, their steps, and what lies beyond the edges. Any number of axes.
//
//   ASSIGN_OR_RETURN(const Window window, WindowOf(op, {28, 28}, {3, 3}));
//   const Dims sizes = OutputSizes(window);
#ifndef ADDNORM_RUNTIME_OPS_WINDOW_H_
#define ADDNORM_RUNTIME_OPS_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/op.h"

namespace addnorm::runtime {

struct WindowAxis {
  int64_t input = 1, kernel = 1;
  int64_t stride = 1, dilation = 1;
  int64_t begin = 0, end = 0;  // padding
  int64_t output = 1;

  // Where in the input tap k of the window at `position` is; it may be outside.
  int64_t At(int64_t position, int64_t k) const {
    return position * stride - begin + k * dilation;
  }
  // The first tap from which on all are at `index` or behind it.
  int64_t FirstTapFrom(int64_t position, int64_t index) const {
    const int64_t distance = index - At(position, 0);
    if (distance <= 0) return 0;
    return std::min((distance - 1) / dilation + 1, kernel);
  }
};

using Window = std::vector<WindowAxis>;

// Reads strides, dilations, pads, auto_pad and ceil_mode.
absl::StatusOr<Window> WindowOf(const OpContext& op, const Dims& input,
                                const Dims& kernel);

// The spatial axes of [N, C, …].
Dims SpatialDims(const Dims& dims);
Dims OutputSizes(const Window& window);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_WINDOW_H_
