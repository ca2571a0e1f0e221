// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The command line: finds the command, parses its options, runs it, prints its
// answer, and turns every failure into a message and an exit code.
//
// It has two steps: options up to the command's name, then, by an app of the
// command's own, the rest. CLI11's subcommands would do both at once, but
// report an unknown command only as "A subcommand is required", and take a file
// that is named like a command for one.
//
//   return addnorm::tool::Main({"optimize", "model.onnx", "fused.onnx"});
#ifndef ADDNORM_TOOL_CLI_H_
#define ADDNORM_TOOL_CLI_H_

#include <string>
#include <vector>

namespace addnorm::tool {

// `args` without the program's name. Never throws; returns the exit code.
int Main(const std::vector<std::string>& args) noexcept;

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_CLI_H_
