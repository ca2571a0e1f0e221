// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/axis_split.h"

#include <limits>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"

namespace addnorm::runtime {

int64_t SizeProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product)
             ? std::numeric_limits<int64_t>::max()
             : product;
}

absl::StatusOr<AxisSplit> SplitAt(const Dims& dims, int64_t axis) {
  AxisSplit split;
  ASSIGN_OR_RETURN(split.axis,
                   NormalAxis(axis, static_cast<int64_t>(dims.size())));
  for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) {
    int64_t& size = i < split.axis    ? split.outer
                    : i == split.axis ? split.length
                                      : split.inner;
    size = SizeProduct(size, dims[i]);
  }
  return split;
}

absl::StatusOr<AxisSplit> FlattenAt(const Dims& dims, int64_t axis) {
  AxisSplit split;
  const int64_t rank = static_cast<int64_t>(dims.size());
  split.axis = axis;
  if (axis != rank) {
    ASSIGN_OR_RETURN(split.axis, NormalAxis(axis, rank));
  }
  for (int64_t i = 0; i < rank; ++i) {
    int64_t& size = i < split.axis ? split.outer : split.length;
    size = SizeProduct(size, dims[i]);
  }
  return split;
}

}  // namespace addnorm::runtime
