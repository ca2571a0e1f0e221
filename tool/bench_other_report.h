// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What bench tells of arms that are not its own, of the pair and of models
// alike: other models, and ONNX Runtime.
//
//   text += ToText(bench.others, bench.not_run, bench.whole, width);
#ifndef ADDNORM_TOOL_BENCH_OTHER_REPORT_H_
#define ADDNORM_TOOL_BENCH_OTHER_REPORT_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tool/bench_result.h"

namespace addnorm::tool {

// A name as tables have it: at most so long that columns fit.
std::string ArmLabel(const std::string& name);

// A row of a table of the pair's arms: how many bytes it moves is not known.
std::vector<std::string> OtherRow(const OtherArm& other,
                                  const BenchCase& times);

// A line each: results, and the time against its like; then what did not run.
std::string ToText(const std::vector<OtherArm>& others,
                   const std::vector<std::string>& not_run,
                   const BenchCase& times, size_t width);
nlohmann::ordered_json ToJson(const std::vector<OtherArm>& others);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_OTHER_REPORT_H_
