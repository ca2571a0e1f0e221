// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Prints what a command answered: results on stdout, failures on stderr, and
// with --json exactly one object on stdout, whatever happened.
//
//   const Output output{.command = "optimize", .json = true};
//   return output.Print(answer, terminal);
#ifndef ADDNORM_TOOL_OUTPUT_H_
#define ADDNORM_TOOL_OUTPUT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tool/commands.h"
#include "tool/exit_code.h"
#include "tool/term.h"

namespace addnorm::tool {

struct Output {
  std::string command;  // names the schema: "onnx-addnorm/optimize/1"
  bool json = false;
  bool quiet = false;  // no text on stderr but errors

  ExitCode Print(absl::StatusOr<Answer> answer, const Terminal& terminal) const;
};

// Writes and flushes. A reader that is gone is fine (kDone); a full disk is not
// (kSystem, with a message on stderr).
ExitCode WriteStdout(std::string_view text);

// Says what it can: nowhere is left to report that stderr cannot be written.
void WriteStderr(std::string_view text);

// Standard output is a pipe that nobody reads any more.
bool IsReaderGone();

// "m.onnx: is empty\nhint: download it again" as two parts, safe to print.
Failure ToFailure(const absl::Status& status);

// What the object of a command's answer is: "onnx-addnorm/optimize/1".
std::string SchemaOf(std::string_view command);

// Two-space indentation; bytes that are no UTF-8 become U+FFFD.
std::string Dump(const nlohmann::ordered_json& json);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_OUTPUT_H_
