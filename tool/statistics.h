// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A tensor in numbers, for people who look at it: extremes, mean, NaNs, the
// first elements. Not for comparisons.
//
//   StatisticsOf(logits).max;
#ifndef ADDNORM_TOOL_STATISTICS_H_
#define ADDNORM_TOOL_STATISTICS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/tensor.h"

namespace addnorm::tool {

// A tensor's elements in numbers; of types that numbers do not fit, only the
// count.
struct Statistics {
  bool is_integer = false;
  int64_t count = 0;
  int64_t nan = 0;
  int64_t infinite = 0;
  // Of elements that are no NaN; nullopt if there is none.
  std::optional<double> min, max, mean;
  std::vector<double> first;
};
Statistics StatisticsOf(const runtime::Tensor& tensor);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_STATISTICS_H_
