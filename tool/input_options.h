// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// --inputs and --dim, the same in every command that runs models.
//
//   AddInputsOption(app, options->inputs);
#ifndef ADDNORM_TOOL_INPUT_OPTIONS_H_
#define ADDNORM_TOOL_INPUT_OPTIONS_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"

namespace addnorm::tool {

void AddInputsOption(CLI::App& app, std::string& folder);
// Words that ParseDims (run_inputs.h) takes.
void AddDimOption(CLI::App& app, std::vector<std::string>& words);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_INPUT_OPTIONS_H_
