// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/help.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "CLI/Formatter.hpp"
#include "fmt/format.h"
#include "tool/commands.h"
#include "tool/output.h"
#include "tool/suggestion.h"

namespace addnorm::tool {
namespace {

// Where the descriptions of options and commands start.
constexpr size_t kColumn = 24;

constexpr std::string_view kPurpose =
    "Fuses residual Add + RMSNorm pairs in ONNX models, bit for bit.";

constexpr std::string_view kRootExamples = R"(
Examples:
  onnx-addnorm optimize model.onnx fused.onnx
  onnx-addnorm optimize model.onnx --dry-run --explain
  onnx-addnorm optimize - - < model.onnx > fused.onnx
  onnx-addnorm verify model.onnx fused.onnx
  onnx-addnorm inspect model.onnx --json
  onnx-addnorm run model.onnx --inputs data --outputs out

Exit codes:
    0  done, also when there was nothing to fuse
    1  the answer is no, e.g. the models that verify compares differ
    2  wrong command line, or a request that is refused
    3  the model is invalid or not supported
    4  the file system, or not enough memory
   70  a bug in this tool; please report it
  130  interrupted; other signals: 128 and their number (143: SIGTERM)
)";

constexpr std::string_view kListHint =
    "\nhint: 'onnx-addnorm -h' lists the commands";

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
  }
  return names;
}

CLI::Formatter MakeFormatter() {
  CLI::Formatter formatter;
  formatter.column_width(kColumn);
  return formatter;
}

std::string Options(const CLI::App& app) {
  return MakeFormatter().make_groups(&app, CLI::AppFormatMode::Normal);
}

std::string RootHelp(const CLI::App& root, HelpLength length) {
  std::string text =
      fmt::format("{}\n\nUsage: {} COMMAND [OPTIONS] ...\n\nCommands:\n",
                  kPurpose, root.get_name());
  for (const Command& command : kCommands) {
    text +=
        fmt::format("  {:<{}}{}\n", command.name, kColumn - 2, command.summary);
  }
  text += Options(root);
  text += fmt::format("\n'{} COMMAND -h' shows the options of a command.\n",
                      root.get_name());
  if (length == HelpLength::kLong) text += kRootExamples;
  return text;
}

// "could not convert: …"; but "IN is required" stays.
std::string Uncapitalized(std::string text) {
  if (text.size() > 1 &&
      std::islower(static_cast<unsigned char>(text[1])) != 0) {
    text[0] =
        static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

absl::Status Usage(const CLI::App& app, std::string_view what) {
  return absl::FailedPreconditionError(fmt::format(
      "{}\nhint: '{} -h' shows what can be given", what, app.get_name()));
}

bool IsOption(std::string_view word) {
  return word.starts_with('-') && word.size() > 1;
}

absl::Status Unexpected(const CLI::App& app, std::string_view word) {
  if (!IsOption(word))
    return Usage(app, fmt::format("unexpected argument '{}'", word));
  const std::string_view name = word.substr(0, word.find('='));
  return Usage(app, fmt::format("unknown option '{}'{}", name,
                                Suggestion(name, OptionNames(app))));
}

}  // namespace

ExitCode PrintHelp(const CLI::App& app, HelpLength length) {
  const CLI::Formatter formatter = MakeFormatter();
  std::string text =
      fmt::format("{}: {}\n\n", app.get_name(), app.get_description());
  text += formatter.make_usage(&app, app.get_name()) +
          formatter.make_positionals(&app);
  text += Options(app);
  if (length == HelpLength::kLong) {
    text += fmt::format("\n{}\n", app.get_footer());
  }
  return WriteStdout(text);
}

ExitCode PrintRootHelp(const CLI::App& root, HelpLength length) {
  return WriteStdout(RootHelp(root, length));
}

ExitCode PrintUsageToStderr(const CLI::App& root) {
  WriteStderr(RootHelp(root, HelpLength::kShort));
  return ExitCode::kUsage;
}

ExitCode PrintVersion() {
  return WriteStdout(fmt::format(
      "onnx-addnorm {}\nonnx {}, protobuf {}, abseil {}; compiled by {}\n",
      ADDNORM_VERSION, ADDNORM_ONNX_VERSION, ADDNORM_PROTOBUF_VERSION,
      ADDNORM_ABSL_VERSION, ADDNORM_COMPILER));
}

absl::Status UsageError(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> extras = app.remaining();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr &&
      !extras.empty()) {
    return Unexpected(app, extras.front());
  }
  // What is missing may well be what an unknown option swallowed.
  const auto option = std::find_if(extras.begin(), extras.end(), IsOption);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
      option != extras.end()) {
    return Unexpected(app, *option);
  }
  return Usage(app, Uncapitalized(error.what()));
}

absl::Status UnknownCommand(std::string_view name) {
  return absl::FailedPreconditionError(
      fmt::format("unknown {} '{}'{}{}", IsOption(name) ? "option" : "command",
                  name, Suggestion(name, CommandNames()), kListHint));
}

absl::Status MissingCommand() {
  return absl::FailedPreconditionError(
      fmt::format("no command is given{}", kListHint));
}

}  // namespace addnorm::tool
