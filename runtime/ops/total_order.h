// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The order in which ops sort elements: NaN is greater than every number and
// equal to NaN, so that a sort is the same whatever the elements are.
//
//   LessInTotalOrder(1.0f, NAN);  // true
#ifndef ADDNORM_RUNTIME_OPS_TOTAL_ORDER_H_
#define ADDNORM_RUNTIME_OPS_TOTAL_ORDER_H_

#include <type_traits>

#include "runtime/element_types.h"

namespace addnorm::runtime {

template <typename T>
bool LessInTotalOrder(T a, T b) {
  const ComputeType<T> x = Widen(a), y = Widen(b);
  if constexpr (std::is_floating_point_v<ComputeType<T>>) {
    return x < y || (y != y && x == x);
  } else {
    return x < y;
  }
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_TOTAL_ORDER_H_
