// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What options must be given, where CLI11 takes more: to it "" is a folder, 010
// is eight, 0x10 and NaN are numbers.
//
// Not what values mean together; that is the commands' own.
//
//   app.add_option("--outputs", folder)->check(NotEmpty());
//   app.add_option("--rounds", rounds)->transform(WholeNumber(1, 1000));
//   app.add_option("--seconds", seconds)->check(NumberFrom(0.001, 1e6));
#ifndef ADDNORM_TOOL_OPTION_CHECKS_H_
#define ADDNORM_TOOL_OPTION_CHECKS_H_

#include <cstdint>
#include <limits>

#include "CLI/App.hpp"

namespace addnorm::tool {

// A path. An empty word is what a script's unset variable gives: taken for "not
// given", it would change what a command does without a word.
CLI::Validator NotEmpty();

// Decimal digits. To be given to transform(): what it lets pass is rewritten so
// that CLI11 cannot read it otherwise.
CLI::Validator WholeNumber(uint64_t least, uint64_t most);

// A finite decimal number in that range: "0.5", "1e-30".
CLI::Validator NumberFrom(
    double least, double most = std::numeric_limits<double>::infinity());

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_OPTION_CHECKS_H_
