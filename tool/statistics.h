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
#include <variant>
#include <vector>

#include "runtime/tensor.h"

namespace addnorm::tool {

// An element, exact: not every integer is a double.
using Number = std::variant<double, int64_t, uint64_t>;

// A tensor's elements in numbers; of types that numbers do not fit, only the
// count.
struct Statistics {
  int64_t count = 0;
  int64_t nan = 0;
  int64_t infinite = 0;
  // Of elements that are no NaN; nullopt if there is none.
  std::optional<Number> min, max;
  std::optional<double> mean;  // of integers, of their exact sum
  std::vector<Number> first;
};
Statistics StatisticsOf(const runtime::Tensor& tensor);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_STATISTICS_H_
