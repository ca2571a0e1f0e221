// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The upper roof of a roofline: additions and multiplications a second that
// this machine does on some threads, measured and not looked up. Takes a few
// hundredths of a second for each number of threads.
//
//   answer.json["arithmetic"] = MeasureArithmetic({1, 2});
#ifndef ADDNORM_TOOL_ARITHMETIC_ROOF_H_
#define ADDNORM_TOOL_ARITHMETIC_ROOF_H_

#include <vector>

#include "nlohmann/json.hpp"

namespace addnorm::tool {

// [{"threads", "type": "f32" or "f64", "operations_per_second"}]: medians.
nlohmann::ordered_json MeasureArithmetic(const std::vector<int>& threads);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_ARITHMETIC_ROOF_H_
