// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/cli.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <string_view>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/status/status.h"
#include "fmt/format.h"
#include "tool/commands.h"
#include "tool/exit_code.h"
#include "tool/help.h"
#include "tool/output.h"
#include "tool/term.h"

namespace addnorm::tool {
namespace {

using Args = std::vector<std::string>;

struct GlobalOptions {
  bool json = false;
  bool quiet = false;
  int verbose = 0;
  std::string color = "auto";
};

// The same options before and after the command's name.
void AddGlobalOptions(CLI::App& app, GlobalOptions& options) {
  app.set_help_flag("-h", "Show this short help");
  app.set_help_all_flag("--help", "Show help with examples");
  app.add_flag("--json", options.json, "Print one JSON object instead of text");
  app.add_flag("-v,--verbose", options.verbose,
               "Say more on stderr; twice: for debugging")
      ->option_text(" ");
  app.add_flag("-q,--quiet", options.quiet,
               "Nothing but errors on stderr; stdout stays as it is");
  app.add_option("--color", options.color,
                 "auto, always or never (default: auto)")
      ->option_text("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

void Parse(CLI::App& app, const Args& args) {
  // CLI11 takes its arguments from the back.
  app.parse(Args(args.rbegin(), args.rend()));
}

Terminal MakeTerminal(const GlobalOptions& options) {
  const ColorMode mode = options.color == "always"  ? ColorMode::kAlways
                         : options.color == "never" ? ColorMode::kNever
                                                    : ColorMode::kAuto;
  const Terminal terminal = Terminal::Detect(mode);
  SetUpLogging(terminal, options.quiet ? -1 : options.verbose);
  return terminal;
}

// Exceptions are third parties' and our own bugs; a command reports in Status.
absl::StatusOr<Answer> RunGuarded(const RunFunction& run,
                                  const Session& session) {
  try {
    return run(session);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(fmt::format("internal error: {}", error.what()));
  }
}

bool WantsJson(const Args& args) {
  const auto end = std::find(args.begin(), args.end(), "--");
  return std::find(args.begin(), end, "--json") != end;
}

ExitCode RunCommand(const Command& command, const Args& args,
                    GlobalOptions options) {
  CLI::App app(std::string(command.summary),
               fmt::format("onnx-addnorm {}", command.name));
  const RunFunction run = command.add(app);
  AddGlobalOptions(app, options);
  Output output{.command = std::string(command.name), .json = options.json};
  try {
    Parse(app, args);
  } catch (const CLI::CallForHelp&) {
    return PrintHelp(app, HelpLength::kShort);
  } catch (const CLI::CallForAllHelp&) {
    return PrintHelp(app, HelpLength::kLong);
  } catch (const CLI::ParseError& error) {
    output.json |= WantsJson(args);
    return output.Print(UsageError(app, error), MakeTerminal(options));
  }
  output.json = options.json;
  output.quiet = options.quiet;
  Session session{.terminal = MakeTerminal(options),
                  .json = options.json,
                  .verbose = options.verbose > 0};
  session.terminal.shows_progress &= !options.quiet;
  return output.Print(RunGuarded(run, session), session.terminal);
}

ExitCode FindAndRun(const Args& args, const GlobalOptions& options) {
  const auto* command =
      std::find_if(std::begin(kCommands), std::end(kCommands),
                   [&](const Command& c) { return c.name == args.front(); });
  if (command != std::end(kCommands)) {
    return RunCommand(*command, Args(args.begin() + 1, args.end()), options);
  }
  const Output output{.command = "error",
                      .json = options.json || WantsJson(args)};
  return output.Print(UnknownCommand(args.front()), MakeTerminal(options));
}

ExitCode Dispatch(const Args& args) {
  GlobalOptions options;
  bool version = false;
  CLI::App root("", "onnx-addnorm");
  AddGlobalOptions(root, options);
  root.add_flag("--version", version,
                "Show the versions of this tool and of its libraries");
  // Stops at the command's name and leaves the rest alone.
  root.prefix_command();
  try {
    Parse(root, args);
  } catch (const CLI::CallForHelp&) {
    return PrintRootHelp(root, HelpLength::kShort);
  } catch (const CLI::CallForAllHelp&) {
    return PrintRootHelp(root, HelpLength::kLong);
  } catch (const CLI::ParseError& error) {
    const Output output{.command = "error", .json = WantsJson(args)};
    return output.Print(UsageError(root, error), MakeTerminal(options));
  }
  if (version) return PrintVersion();
  const Args rest = root.remaining();
  if (!rest.empty()) return FindAndRun(rest, options);
  if (!options.json) return PrintUsageToStderr(root);
  const Output output{.command = "error", .json = true};
  return output.Print(MissingCommand(), MakeTerminal(options));
}

}  // namespace

int Main(const std::vector<std::string>& args) noexcept {
  // A reader that has seen enough is no failure: writes report EPIPE instead.
  std::signal(SIGPIPE, SIG_IGN);
  // A limit on file sizes is a full disk, not a reason to die.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return static_cast<int>(Dispatch(args));
  } catch (const std::bad_alloc&) {
    WriteStderr("error: out of memory\n");
    return static_cast<int>(ExitCode::kSystem);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: internal error: %s\n", error.what());
    return static_cast<int>(ExitCode::kBug);
  }
}

}  // namespace addnorm::tool
