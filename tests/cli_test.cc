// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The program from outside: exit code, stdout and stderr of real runs, each in
// a folder of its own. What it fuses is tested elsewhere.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"
#include "proto/text.h"
#include "tests/support/catch.h"

namespace addnorm::tests {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

std::string ReadFile(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void WriteFile(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// A temporary folder in which the program runs.
class Sandbox {
 public:
  Sandbox() {
    std::string name =
        (fs::temp_directory_path() / "addnorm-cli-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("no temporary folder");
    root_ = name;
    folder_ = root_ / "work";
    fs::create_directory(folder_);
  }
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  ~Sandbox() { fs::remove_all(root_); }

  fs::path operator/(std::string_view name) const { return folder_ / name; }

  // `arguments` are words of a shell, so they may redirect.
  Outcome Run(const std::string& arguments) const {
    return Shell("$TOOL " + arguments);
  }

  // $TOOL is the program.
  Outcome Shell(const std::string& command) const {
    const fs::path out = root_ / "out";
    const fs::path err = root_ / "err";
    std::ostringstream line;
    line << "cd " << folder_ << " && export TOOL=" << fs::path(ADDNORM_BIN)
         << " && { " << command << "; } </dev/null >" << out << " 2>" << err;
    const int status = std::system(line.str().c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(out),
            ReadFile(err)};
  }

 private:
  fs::path root_;
  fs::path folder_;
};

// One site whose sum is read again, one norm without an Add.
constexpr std::string_view kModel = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  main (float[2,8] a, float[2,8] b, float[8] w) => (float[2,8] y, float[2,8] z)
  <float eps = {1e-5}, float two = {2.0}>
  {
    [residual] s = Add(a, b)
    sq = Pow(s, two)
    ms = ReduceMean<axes = [-1], keepdims = 1>(sq)
    mse = Add(ms, eps)
    rms = Sqrt(mse)
    r = Reciprocal(rms)
    n = Mul(s, r)
    y = Mul(n, w)
    z = Relu(s)
  })";

constexpr std::string_view kNothingToFuse = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  main (float[2,8] a, float[2,8] b) => (float[2,8] s) { s = Add(a, b) })";

constexpr std::string_view kExternalWeight = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  main (float[2,8] a) => (float[2,8] y)
  <float[8] w = ["location": "w.bin", "offset": "0", "length": "32"]>
  { y = Mul(a, w) })";

void WriteModel(const fs::path& path, std::string_view text) {
  const auto bytes = proto::SerializeText(text);
  if (!bytes.ok()) throw std::runtime_error(bytes.status().ToString());
  WriteFile(path, *bytes);
}

}  // namespace

TEST_CASE("no arguments: the short help on stderr, exit 2", "[cli]") {
  const Outcome run = Sandbox().Run("");
  CHECK(run.exit_code == 2);
  CHECK(run.out.empty());
  CHECK(Contains(run.err, "Usage: onnx-addnorm COMMAND"));
  CHECK(Contains(run.err, "optimize  "));
}

TEST_CASE("the option -h fits one screen, --help has examples, both are results",
          "[cli]") {
  const Sandbox box;
  for (const std::string command : {"", "optimize ", "inspect ", "patterns "}) {
    CAPTURE(command);
    const Outcome brief = box.Run(command + "-h");
    const Outcome full = box.Run(command + "--help");
    CHECK(brief.exit_code == 0);
    CHECK(full.exit_code == 0);
    CHECK(brief.err + full.err == "");
    CHECK(std::count(brief.out.begin(), brief.out.end(), '\n') <= 24);
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
      {"optimize a b c", "error: unexpected argument 'c'\n"},
      {"optimize a b ''", "error: unexpected argument ''\n"},
      {"optimize", "error: IN is required\n"},
      {"optimize a",
       "error: OUT is missing\nhint: give a path for the output, or "
       "--dry-run\n"},
      {"optimize a - --json",
       "error: OUT '-' and --json both need standard output\n"},
      {"optimize a b --target=tpu", "error: --target: tpu not in {portable}\n"},
      {"optimize a b --data=link",
       "error: --data: link not in {auto,keep,copy}\n"},
      {"optimize a b --expect-fused=x",
       "error: could not convert: --expect-fused = x\n"},
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

TEST_CASE("optimize writes the fused model and a summary", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome run = box.Run("optimize m.onnx out.onnx");
  CHECK(run.exit_code == 0);
  CHECK(run.err == "");
  CHECK(Contains(run.out, "before  after\n"));
  CHECK(Contains(run.out, "\nnodes "));
  CHECK(Contains(run.out, "fused 1 of 1 site ("));
  CHECK(Contains(run.out, "m.onnx ("));
  CHECK(Contains(run.out, " -> out.onnx ("));
  CHECK(fs::exists(box / "out.onnx"));
}

TEST_CASE("optimize --json prints one object and nothing else", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome run = box.Run("optimize --json m.onnx out.onnx");
  const Json json = Json::parse(run.out);
  CHECK(json["schema"] == "onnx-addnorm/optimize/1");
  CHECK(json["exit_code"] == 0);
  CHECK(json["fused"] == 1);
  CHECK(json["written"] == true);
  CHECK(json["ops"]["before"]["Sqrt"] == 1);
  CHECK_FALSE(json["ops"]["after"].contains("Sqrt"));
  CHECK(json["output"]["bytes"] == fs::file_size(box / "out.onnx"));
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
    CHECK(run.err == "error: none.onnx: no such file or directory\n");
  }
  CHECK(Json::parse(box.Run("optimize --json").out)["exit_code"] == 2);
  CHECK(Json::parse(box.Run("--json").out)["error"] == "no command is given");
  CHECK(Json::parse(box.Run("optimise --json").out)["schema"] ==
        "onnx-addnorm/error/1");
}

TEST_CASE("optimize --dry-run does all but writing", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome run = box.Run("optimize m.onnx --dry-run");
  CHECK(run.exit_code == 0);
  CHECK(Contains(run.out, "would fuse 1 of 1 site"));
  CHECK(Contains(run.out, "nothing was written"));
  CHECK(box.Run("optimize m.onnx out.onnx --dry-run").exit_code == 0);
  CHECK_FALSE(fs::exists(box / "out.onnx"));
  CHECK(box.Run("optimize m.onnx m.onnx --dry-run").exit_code == 2);
}

TEST_CASE("optimize --explain tells the verdict of each site", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome run = box.Run("optimize m.onnx --dry-run --explain");
  CHECK(Contains(run.out, "fused            Add 'residual'\n"));
  CHECK(Contains(run.out, "                 as AddRmsNorm_"));
}

TEST_CASE("optimize --expect-fused writes nothing if another number was fused",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  CHECK(box.Run("optimize m.onnx good.onnx --expect-fused 1").exit_code == 0);
  const Outcome run = box.Run("optimize m.onnx bad.onnx --expect-fused 2");
  CHECK(run.exit_code == 1);
  CHECK(Contains(run.out, "would fuse 1 of 1 site"));
  CHECK(run.err ==
        "error: m.onnx: expected 2 fused sites, found 1\n"
        "hint: --explain says why each site was fused or not\n");
  CHECK_FALSE(fs::exists(box / "bad.onnx"));
  CHECK(box.Run("optimize m.onnx - --expect-fused 2").out == "");
}

TEST_CASE("optimize copies a model in which nothing is fused", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kNothingToFuse);
  const Outcome run = box.Run("optimize m.onnx out.onnx");
  CHECK(run.exit_code == 0);
  CHECK(Contains(run.out, "no sites: no residual Add feeds an RMSNorm\n"));
  CHECK(Contains(run.out, ", a copy byte for byte)\n"));
  CHECK(ReadFile(box / "m.onnx") == ReadFile(box / "out.onnx"));
}

TEST_CASE("optimize replaces an output only with --force, and never its input",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  WriteFile(box / "out.onnx", "mine");
  const std::string model = ReadFile(box / "m.onnx");
  CHECK(box.Run("optimize m.onnx out.onnx").exit_code == 2);
  CHECK(ReadFile(box / "out.onnx") == "mine");
  CHECK(box.Run("optimize m.onnx out.onnx --force").exit_code == 0);
  CHECK(ReadFile(box / "out.onnx") != "mine");
  CHECK(box.Run("optimize m.onnx ./m.onnx --force").exit_code == 2);
  CHECK(ReadFile(box / "m.onnx") == model);
}

TEST_CASE("'-' reads standard input and writes standard output", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome run = box.Run("optimize - - <m.onnx");
  CHECK(run.exit_code == 0);
  CHECK(Contains(run.err, "<stdin> ("));
  CHECK(Contains(run.err, " -> <stdout> ("));
  box.Run("optimize m.onnx file.onnx");
  CHECK(run.out == ReadFile(box / "file.onnx"));
  CHECK(box.Run("optimize -q m.onnx -").err == "");
}

TEST_CASE("external data stay where they are, or are copied to another folder",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kExternalWeight);
  WriteFile(box / "w.bin", std::string(32, '\0'));
  fs::create_directory(box / "sub");
  CHECK(Contains(box.Run("optimize m.onnx out.onnx").out,
                 "external data: w.bin (32 bytes), shared\n"));
  CHECK(box.Run("optimize m.onnx sub/a.onnx --data=keep").exit_code == 2);
  CHECK(Contains(box.Run("optimize m.onnx sub/a.onnx").out,
                 "external data: w.bin (32 bytes), copied\n"));
  CHECK(fs::file_size(box / "sub/w.bin") == 32);
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

TEST_CASE("inspect shows versions, inputs, operators and sites", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome run = box.Run("inspect m.onnx");
  CHECK(run.exit_code == 0);
  CHECK(Contains(run.out, "ir version  8\n"));
  CHECK(Contains(run.out, "opsets      ai.onnx 17\n"));
  CHECK(Contains(run.out, "input       float[2,8] a\n"));
  CHECK(Contains(run.out, "weights     2 tensors, 8 bytes\n"));
  CHECK(Contains(run.out, "nodes       9\n"));
  CHECK(Contains(run.out, "can fuse 1 of 1 site"));
  CHECK(Contains(run.out, "Add 'residual'"));
}

TEST_CASE("inspect --json has the same facts", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Json json = Json::parse(box.Run("inspect m.onnx --json").out);
  CHECK(json["schema"] == "onnx-addnorm/inspect/1");
  CHECK(json["opsets"][""] == 17);
  CHECK(json["inputs"][0] == Json({{"name", "a"}, {"type", "float[2,8]"}}));
  CHECK(json["nodes"] == 9);
  CHECK(json["initializers"]["embedded"] == Json({{"count", 2}, {"bytes", 8}}));
  CHECK(json["fused"] == 1);
}

TEST_CASE("inspect counts external weights apart", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kExternalWeight);
  WriteFile(box / "w.bin", std::string(32, '\0'));
  CHECK(Contains(box.Run("inspect m.onnx").out,
                 "external    1 tensor, 32 bytes\n"));
}

TEST_CASE("inspect prints the model, or the nodes of one operator", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  CHECK(Contains(box.Run("inspect m.onnx --text").out, "  rms = Sqrt(mse)\n"));
  CHECK(box.Run("inspect m.onnx --nodes Sqrt").out == "rms = Sqrt(mse)\n");
  const Outcome run = box.Run("inspect m.onnx --nodes Sqr");
  CHECK(run.exit_code == 1);
  CHECK(run.err ==
        "error: m.onnx: no node of operator 'Sqr'\n"
        "hint: inspect without --nodes lists the operators\n");
}

TEST_CASE("inspect reads ONNX text too", "[cli]") {
  const Sandbox box;
  WriteFile(box / "m.onnxtxt", kModel);
  CHECK(Contains(box.Run("inspect m.onnxtxt").out, "can fuse 1 of 1 site"));
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
  CHECK(run.err == "error: standard output: no space left on device\n");
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
