// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Mean and standard deviation of a row, in the type that its elements are
// computed in: both sums as row_sum.h says, the second of squared distances
// from the mean.
//
//   const RowMoments<float> moments = MomentsOf(x, n, epsilon);
#ifndef ADDNORM_RUNTIME_OPS_ROW_MOMENTS_H_
#define ADDNORM_RUNTIME_OPS_ROW_MOMENTS_H_

#include <cmath>
#include <cstdint>

#include "runtime/element_types.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/row_sum.h"

namespace addnorm::runtime {

template <typename S>
struct RowMoments {
  S mean = 0;
  S deviation = 0;  // sqrt(variance + epsilon)
};

template <typename T, typename S = ComputeType<T>>
RowMoments<S> MomentsOf(const T* x, int64_t n, ComputeType<T> epsilon) {
  const S mean = SumRow(x, static_cast<size_t>(n)) / static_cast<S>(n);
  const S variance = RowSum<S>(n,
                               [&](int64_t i) {
                                 const S distance = Widen(x[i]) - mean;
                                 return distance * distance;
                               }) /
                     static_cast<S>(n);
  return {mean, std::sqrt(variance + epsilon)};
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_ROW_MOMENTS_H_
