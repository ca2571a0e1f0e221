// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A tensor seen as [outer, length, inner] around one axis. Not for more axes
// than one (reduce_plan.h).
//
//   ASSIGN_OR_RETURN(const AxisSplit split, SplitAt(x.dims(), axis));
//   for (int64_t i = 0; i < split.outer; ++i) Row(x + i * split.length);
#ifndef ADDNORM_RUNTIME_OPS_AXIS_SPLIT_H_
#define ADDNORM_RUNTIME_OPS_AXIS_SPLIT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/grain.h"
#include "runtime/tensor.h"

namespace addnorm::runtime {

// a * b for sizes, at most the largest int64: tensors without elements may have
// axes whose product is beyond it.
int64_t SizeProduct(int64_t a, int64_t b);

struct AxisSplit {
  int64_t axis = 0;  // not negative
  int64_t outer = 1, length = 1, inner = 1;
  int64_t lines() const { return SizeProduct(outer, inner); }
  // Where element 0 of a line is; its elements are `inner` apart.
  int64_t Start(int64_t line) const {
    return line / inner * length * inner + line % inner;
  }
};

// A negative axis counts from the back. kInvalidArgument if it is out of range.
absl::StatusOr<AxisSplit> SplitAt(const Dims& dims, int64_t axis);
// [outer, length] with all of dims[axis, …) in length; axis may be the rank.
absl::StatusOr<AxisSplit> FlattenAt(const Dims& dims, int64_t axis);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_AXIS_SPLIT_H_
