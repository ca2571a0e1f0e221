// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The option --simd of commands that compute: all kernels on one SIMD target.
// Results do not depend on it; it shows that they do not, and what it costs.
//
//   AddSimdOption(app, options->simd);  // a name that is none is refused
//   ApplySimd(options.simd);            // before anything runs
#ifndef ADDNORM_TOOL_SIMD_OPTION_H_
#define ADDNORM_TOOL_SIMD_OPTION_H_

#include <string>

#include "CLI/App.hpp"

namespace addnorm::tool {

void AddSimdOption(CLI::App& app, std::string& simd);
// For the rest of the process; "": as it is.
void ApplySimd(const std::string& simd);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_SIMD_OPTION_H_
