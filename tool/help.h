// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Help, version, and messages for wrong command lines.
//
//   UsageError(app, error);
//   // "unknown option '--dryrun'; did you mean '--dry-run'?"
#ifndef ADDNORM_TOOL_HELP_H_
#define ADDNORM_TOOL_HELP_H_

#include <string>
#include <string_view>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "tool/exit_code.h"

namespace addnorm::tool {

// Short fits one screen; long adds examples (the app's footer).
enum class HelpLength { kShort, kLong };

ExitCode PrintHelp(const CLI::App& app, HelpLength length);
ExitCode PrintRootHelp(const CLI::App& root, HelpLength length);
ExitCode PrintVersion();

// For a call without a command: the short help on stderr, kUsage.
ExitCode PrintUsageToStderr(const CLI::App& root);

// What CLI11 found wrong, as a status that ends in exit code 2.
absl::Status UsageError(const CLI::App& app, const CLI::ParseError& error);
absl::Status UnknownCommand(std::string_view name);
absl::Status MissingCommand();

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_HELP_H_
