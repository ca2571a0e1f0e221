// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks of option values that CLI11 lacks: each gives "" for a good value,
// else what is wrong with it.
//
//   app.add_option("--seconds", seconds)->check(NumberFrom(0.001, 1e6));
//   app.add_option("--outputs", folder)->check(CheckPath);
#ifndef ADDNORM_TOOL_OPTION_CHECKS_H_
#define ADDNORM_TOOL_OPTION_CHECKS_H_

#include <functional>
#include <limits>
#include <string>

namespace addnorm::tool {

// An empty word is what a script's unset variable gives: taken for "not given",
// it would change what a command does without a word.
std::string CheckPath(const std::string& text);

// A finite number from `low` to `high`; CLI11's own range takes NaN.
std::function<std::string(const std::string&)> NumberFrom(
    double low, double high = std::numeric_limits<double>::infinity());

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_OPTION_CHECKS_H_
