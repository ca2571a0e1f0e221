// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The program from outside, whatever the command: help, usage, streams, exit
// codes. What it fuses is tested elsewhere.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/sandbox.h"

namespace addnorm::tests {

namespace fs = std::filesystem;
using Json = nlohmann::json;

TEST_CASE("no arguments: the short help on stderr, exit 2", "[cli]") {
  const Outcome run = Sandbox().Run("");
  CHECK(run.exit_code == 2);
  CHECK(run.out.empty());
  CHECK(Contains(run.err, "Usage: onnx-addnorm COMMAND"));
  CHECK(Contains(run.err, "optimize  "));
}

TEST_CASE(
    "the option -h fits one screen, --help has examples, both are results",
    "[cli]") {
  const Sandbox box;
  for (const std::string command : {"", "optimize ", "inspect ", "patterns "}) {
    CAPTURE(command);
    const Outcome brief = box.Run(command + "-h");
    const Outcome full = box.Run(command + "--help");
    CHECK(brief.exit_code == 0);
    CHECK(full.exit_code == 0);
    CHECK(brief.err + full.err == "");
    CHECK(std::count(brief.out.begin(), brief.out.end(), '\n') <= 30);
    CHECK_FALSE(Contains(brief.out, "Examples:"));
    CHECK(Contains(full.out, "Examples:\n  onnx-addnorm "));
  }
}

TEST_CASE("help stays within 100 columns", "[cli]") {
  const Sandbox box;
  for (const std::string command : {"", "optimize ", "inspect ", "patterns "}) {
    std::istringstream lines(box.Run(command + "--help").out);
    for (std::string line; std::getline(lines, line);)
      CHECK(line.size() <= 100);
  }
}

TEST_CASE("the option --version names this tool and its libraries", "[cli]") {
  const Outcome run = Sandbox().Run("--version");
  CHECK(run.exit_code == 0);
  CHECK(run.out.starts_with("onnx-addnorm "));
  for (const char* library :
       {"\nonnx ", "protobuf ", "abseil ", "compiled by "}) {
    CHECK(Contains(run.out, library));
  }
}

TEST_CASE("a wrong command line says what is wrong and exits 2", "[cli]") {
  struct Row {
    const char* arguments;
    const char* message;
  };
  const Row rows[] = {
      {"optimise a b",
       "error: unknown command 'optimise'; did you mean 'optimize'?\n"},
      {"frobnicate", "error: unknown command 'frobnicate'\n"},
      {"--wrong optimize a b", "error: unknown option '--wrong'\n"},
      {"optimize --dryrun a b",
       "error: unknown option '--dryrun'; did you mean '--dry-run'?\n"},
      {"optimize --bogus", "error: unknown option '--bogus'\n"},
      {"optimize --forse a b",
       "error: unknown option '--forse'; did you mean '--force'?\n"},
      {"optimize --dry-rum=1",
       "error: unknown option '--dry-rum'; did you mean '--dry-run'?\n"},
      {"optimize a b c", "error: unexpected argument 'c'\n"},
      {"optimize a b ''", "error: unexpected argument ''\n"},
      {"optimize", "error: IN is required\n"},
      {"optimize a",
       "error: OUT is missing\nhint: give a path for the output, or "
       "--dry-run\n"},
      {"optimize a - --json",
       "error: OUT '-' and --json both need standard output\n"},
      {"optimize a b --target=tpu",
       "error: --target: tpu not in {portable,ort,onnx}\n"},
      {"optimize a b --data=link",
       "error: --data: link not in {auto,keep,copy}\n"},
      {"optimize a b --expect-fused=x",
       "error: --expect-fused: x is not a whole number from 0 to "},
      {"--color=red patterns",
       "error: --color: red not in {auto,always,never}\n"},
      {"patterns --text --markdown", " excludes --"},
      {"inspect a --text --nodes Add", " excludes --"},
      {"inspect \"$(printf 'a\\033b')\" c", "error: unexpected argument 'c'\n"},
  };
  const Sandbox box;
  for (const Row& row : rows) {
    CAPTURE(row.arguments);
    const Outcome run = box.Run(row.arguments);
    CHECK(run.exit_code == 2);
    CHECK(Contains(run.err, row.message));
    CHECK(Contains(run.err, "\nhint: "));
    CHECK((run.out.empty() || Contains(row.arguments, "--json")));
  }
}

TEST_CASE("a file may be named like a command or like an option", "[cli]") {
  const Sandbox box;
  WriteModel(box / "inspect", kModel);
  WriteModel(box / "-m.onnx", kModel);
  CHECK(box.Run("inspect inspect").exit_code == 0);
  CHECK(box.Run("optimize -- -m.onnx -o.onnx").exit_code == 0);
  CHECK(fs::exists(box / "-o.onnx"));
}

TEST_CASE("a failure with --json is one object too", "[cli]") {
  const Sandbox box;
  for (const char* arguments :
       {"optimize none.onnx out.onnx --json", "--json inspect none.onnx"}) {
    const Outcome run = box.Run(arguments);
    const Json json = Json::parse(run.out);
    CHECK(run.exit_code == 4);
    CHECK(json["exit_code"] == 4);
    CHECK(json["error"] == "none.onnx: no such file or directory");
    CHECK(Contains(json["hint"].get<std::string>(), "it was looked for in '"));
    CHECK(run.err.starts_with(
        "error: none.onnx: no such file or directory\nhint: "));
  }
  CHECK(Json::parse(box.Run("optimize --json").out)["exit_code"] == 2);
  CHECK(Json::parse(box.Run("--json").out)["error"] == "no command is given");
  CHECK(Json::parse(box.Run("optimise --json").out)["schema"] ==
        "onnx-addnorm/error/1");
}

TEST_CASE("an input that is not there, empty or cut off gets a hint", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  WriteFile(box / "cut.onnx", ReadFile(box / "m.onnx").substr(0, 200));
  fs::create_symlink("gone", box / "link");
  struct Row {
    const char* arguments;
    const char* hint;
  };
  const Row rows[] = {
      {"inspect no/m.onnx", "there is no folder '"},
      {"inspect m.onnx/m.onnx", "there is no folder '"},
      {"inspect none", "it was looked for in '"},
      {"inspect link", "it is a link, and what it stands for is not there"},
      {"inspect - </dev/null", "the command before the pipe wrote nothing"},
      {"inspect cut.onnx",
       "the file may be incomplete: copy or download it again"},
      {"optimize m.onnx no/out.onnx", "the output's folder must exist"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.arguments);
    const Outcome run = box.Run(row.arguments);
    CHECK(run.exit_code >= 3);
    CHECK(Contains(run.err, std::string("\nhint: ") + row.hint));
  }
}

TEST_CASE("what is no model ends with exit 3 and leaves nothing behind",
          "[cli]") {
  const Sandbox box;
  WriteFile(box / "m.onnx", "this is not a model");
  const Outcome run = box.Run("optimize m.onnx out.onnx");
  CHECK(run.exit_code == 3);
  CHECK(run.err.starts_with("error: m.onnx: "));
  CHECK_FALSE(fs::exists(box / "out.onnx"));
}

TEST_CASE("patterns prints the table in each form", "[cli]") {
  const Sandbox box;
  CHECK(Contains(box.Run("patterns").out, "spelling "));
  CHECK(Contains(box.Run("patterns --text").out, "  seen in: "));
  CHECK(box.Run("patterns --markdown").out.starts_with("| rule | spelling |"));
  const Json json = Json::parse(box.Run("patterns --json").out);
  CHECK(json["schema"] == "onnx-addnorm/patterns/1");
  CHECK_FALSE(json["patterns"].empty());
  CHECK_FALSE(Contains(json["patterns"][0]["text"].get<std::string>(), "\n "));
}

TEST_CASE("a closed pipe is success, a full disk is not", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  CHECK(box.Shell("{ sleep 0.1; $TOOL patterns; echo $? >code; } | true")
            .exit_code == 0);
  CHECK(ReadFile(box / "code") == "0\n");
  box.Shell(
      "{ sleep 0.1; $TOOL optimize m.onnx - 2>err; echo $? >code; } | true");
  CHECK(ReadFile(box / "code") == "0\n");
  CHECK(box.Run("optimise 2>/dev/full").exit_code == 2);
  const Outcome run = box.Run("patterns >/dev/full");
  CHECK(run.exit_code == 4);
  CHECK(run.err == "error: <stdout>: no space left on device\n");
}

TEST_CASE("help lists the exit codes, and what signals give", "[cli]") {
  const std::string help = Sandbox().Run("--help").out;
  CHECK(Contains(help, "\n    4  the file system"));
  CHECK(Contains(help,
                 "\n  130  interrupted; other signals: 128 and their "
                 "number (143: SIGTERM)\n"));
}

TEST_CASE("an interrupt ends as exit 130 and leaves nothing behind", "[cli]") {
  const Sandbox box;
  const Outcome run = box.Shell(
      "sleep 1 | timeout --preserve-status -s INT 0.2 $TOOL optimize - "
      "out.onnx");
  CHECK(run.exit_code == 130);
  CHECK(fs::is_empty(box / ""));
}

TEST_CASE("colour is off in files, on by request, and NO_COLOR counts for auto",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  CHECK_FALSE(Contains(box.Run("inspect m.onnx").out, "\x1b["));
  CHECK(Contains(box.Run("--color=always inspect m.onnx").out, "\x1b[32m"));
  CHECK(Contains(box.Run("inspect none --color=always").err, "\x1b[31m"));
  CHECK_FALSE(
      Contains(box.Shell("NO_COLOR=1 $TOOL inspect m.onnx").out, "\x1b["));
}

TEST_CASE("diagnostics go to stderr: none by default, more with -v", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  CHECK(box.Run("optimize m.onnx a.onnx").err == "");
  const Outcome run = box.Run("optimize -v m.onnx b.onnx");
  CHECK(Contains(run.err, "info: m.onnx: "));
  CHECK_FALSE(Contains(run.out, "info: "));
}

TEST_CASE("the option -q silences stderr and leaves stdout", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome run = box.Run("optimize -q m.onnx a.onnx");
  CHECK(run.err == "");
  CHECK(Contains(run.out, "fused 1 of 1 site"));
  CHECK(Contains(box.Run("-h").out,
                 "Nothing but errors on stderr; stdout stays as it is"));
}

TEST_CASE("a name in a file cannot command the terminal", "[cli]") {
  const Sandbox box;
  std::string text(kNothingToFuse);
  text.replace(text.find("[2,8] a"), 7, "[2,8] \"a\x1b[2J\"");
  text.replace(text.find("Add(a"), 5, "Add(\"a\x1b[2J\"");
  WriteModel(box / "m.onnx", text);
  const Outcome run = box.Run("inspect m.onnx");
  CHECK_FALSE(Contains(run.out, "\x1b"));
  CHECK(Contains(run.out, "a\\x1b[2J"));
}

}  // namespace addnorm::tests
