// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The commands: what each one is given, and what it answers. A command prints
// nothing; output.cc prints its Answer, as text or as JSON.
//
// Adding a command: cmd_<name>.cc with an Add function (options, help, and the
// function to run), and a row of kCommands.
#ifndef ADDNORM_TOOL_COMMANDS_H_
#define ADDNORM_TOOL_COMMANDS_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tool/exit_code.h"
#include "tool/term.h"

namespace addnorm::tool {

struct Failure {
  std::string error;         // the line after "error: "
  std::string hint;          // the way out, "" if there is none
  std::string details = {};  // for people, below the two; ends in a newline
};

// nlohmann's move does not throw, but clang-tidy cannot see that.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct Answer {
  ExitCode exit_code = ExitCode::kDone;
  std::string text;  // for people
  // For programs; output.cc adds "schema" and "exit_code".
  nlohmann::ordered_json json;
  // With kNo: which expectation was not met.
  std::optional<Failure> failure;
  // By the model; the text goes to stderr.
  bool stdout_is_taken = false;
};

struct Session {
  Terminal terminal;
  bool json = false;     // --json: stdout belongs to the object
  bool verbose = false;  // -v: lists are not cut
};

using RunFunction = std::function<absl::StatusOr<Answer>(const Session&)>;

struct Command {
  std::string_view name;
  std::string_view summary;
  // Puts options, description and examples (as the footer) on the app; what it
  // returns holds the parsed options.
  RunFunction (*add)(CLI::App& app);
};

RunFunction AddOptimize(CLI::App& app);
RunFunction AddInspect(CLI::App& app);
RunFunction AddRun(CLI::App& app);
RunFunction AddBench(CLI::App& app);
RunFunction AddPatterns(CLI::App& app);
RunFunction AddVerify(CLI::App& app);

inline constexpr Command kCommands[] = {
    {"optimize", "fuse each residual Add with the RMSNorm that reads it",
     AddOptimize},
    {"verify", "prove that a model computes exactly what another does",
     AddVerify},
    {"inspect", "show what is in a model and what optimize would do",
     AddInspect},
    {"run", "run a model on the CPU, on given or generated inputs", AddRun},
    {"bench", "measure what fusing gains on this machine, if anything",
     AddBench},
    {"patterns", "list the spellings of RMSNorm that are recognised",
     AddPatterns},
};

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_COMMANDS_H_
