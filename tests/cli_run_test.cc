// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// run from outside.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "proto/tensor_file.h"
#include "tests/support/catch.h"
#include "tests/support/sandbox.h"

namespace addnorm::tests {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// s + b + b, of which the second sum can take over the first one's buffer.
constexpr std::string_view kSums = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  main (float[n,4] a, float[4] b) => (float[n,4] y)
  <float[4] b = {1, 2, 3, 4}>
  {
    [first] s = Add(a, b)
    [second] t = Add(s, b)
    [last] y = Mul(t, t)
  })";

constexpr std::string_view kUnknown = R"(
  <ir_version: 8, opset_import: ["" : 17, "my" : 1]>
  main (float[2] a) => (float[2] y) { [odd] y = my.Thing(a) })";

void WriteFloats(const fs::path& path, std::vector<int64_t> dims,
                 const std::vector<float>& values) {
  const ir::Tensor tensor{.name = "x",
                          .type = ir::DataType::kFloat,
                          .dims = std::move(dims),
                          .elements = ir::InlineElements{std::string(
                              reinterpret_cast<const char*>(values.data()),
                              values.size() * sizeof(float))}};
  fs::create_directories(path.parent_path());
  const auto written = proto::WriteTensorFile(tensor, path.string());
  if (!written.ok()) throw std::runtime_error(written.ToString());
}

std::vector<float> ReadFloats(const fs::path& path) {
  const auto tensor = proto::ReadTensorFile(path.string());
  if (!tensor.ok()) throw std::runtime_error(tensor.status().ToString());
  const std::string& bytes = *tensor->inline_bytes();
  const auto* floats = reinterpret_cast<const float*>(bytes.data());
  return {floats, floats + bytes.size() / sizeof(float)};
}

TEST_CASE("run reads and writes test data sets", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kSums);
  WriteFloats(box / "in/input_0.pb", {1, 4}, {0, 0, 1, -8});
  const Outcome run = box.Run("run m.onnx --inputs in --outputs out/new");
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  CHECK(Contains(run.out, "y  float[1,4]  -> out/new/output_0.pb\n"));
  CHECK(ReadFloats(box / "out/new/output_0.pb") ==
        std::vector<float>{4, 16, 49, 0});
  CHECK(proto::ReadTensorFile((box / "out/new/output_0.pb").string())->name ==
        "y");
}

TEST_CASE("run without --outputs shows numbers", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kSums);
  WriteFloats(box / "in/input_0.pb", {1, 4}, {0, 0, 1, NAN});
  const Outcome run = box.Run("run m.onnx --inputs in --threads 1");
  CHECK(Contains(run.out, "a  float[1,4]  input_0.pb\n"));
  CHECK(Contains(run.out, "b  float[4]    initializer\n"));
  CHECK(Contains(run.out, "min  max  mean  nan  first values\n"));
  CHECK(Contains(run.out,
                 "y  float[1,4]    4   49    23    1  4, 16, 49, nan\n"));
  CHECK(Contains(run.out, " on 1 thread; memory: "));
}

TEST_CASE("run generates what is not given, and says what", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kSums);
  const Outcome run = box.Run("run m.onnx");
  CHECK(Contains(run.out, "a  float[1,4]  generated: normal(0, 1)\n"));
  CHECK(Contains(run.out, "dims: n=1 (default)\n"));
  const auto json = [&](const char* options) {
    return Json::parse(
        box.Run(std::string("run m.onnx --json ") + options).out);
  };
  const Json first = json("");
  CHECK(first["schema"] == "onnx-addnorm/run/1");
  CHECK(first["outputs"] == json("--threads 2")["outputs"]);
  CHECK(first["outputs"] != json("--seed 1")["outputs"]);
  CHECK(json("--dim n=3")["inputs"][0]["shape"] == Json({3, 4}));
  CHECK(json("--dim n=0")["outputs"][0] == Json({{"name", "y"},
                                                 {"type", "float"},
                                                 {"shape", {0, 4}},
                                                 {"nan", 0},
                                                 {"infinite", 0},
                                                 {"first", Json::array()}}));
}

TEST_CASE("run writes .npy files by the outputs' names", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[2] a) => (float[2] "/out:0") { "/out:0" = Add(a, a) })");
  CHECK(box.Run("run m.onnx --outputs out --format npy").exit_code == 0);
  const std::string file = ReadFile(box / "out/_out_0.npy");
  CHECK(
      Contains(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)"));
  // What was written can be an input.
  fs::rename(box / "out/_out_0.npy", box / "out/a.npy");
  CHECK(Contains(box.Run("run m.onnx --inputs out").out, "a.npy\n"));
}

TEST_CASE("run does not replace outputs unless --force", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kSums);
  WriteFile(box / "out/output_0.pb", "mine");
  const Outcome refused = box.Run("run m.onnx --outputs out");
  CHECK(refused.exit_code == 2);
  CHECK(refused.err ==
        "error: out/output_0.pb: exists\nhint: --force replaces it\n");
  CHECK(ReadFile(box / "out/output_0.pb") == "mine");
  CHECK(box.Run("run m.onnx --outputs out --force").exit_code == 0);
  CHECK(ReadFloats(box / "out/output_0.pb").size() == 4);
}

TEST_CASE("run leaves nothing behind when it fails", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kUnknown);
  const Outcome run = box.Run("run m.onnx --outputs out");
  CHECK(run.exit_code == 3);
  CHECK(run.err ==
        "error: m.onnx: Thing 'odd': the runtime has no operator "
        "my::Thing\nhint: this runtime has the operators of decoder models; "
        "'onnx-addnorm inspect m.onnx' lists what the model uses\n");
  CHECK_FALSE(fs::exists(box / "out"));
}

TEST_CASE("run says which dimensions it guessed when a node fails", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[n, s] a) => (float[n, s] y)
    <float[3] w = {1, 2, 3}> { [odd] y = Add(a, w) })");
  const Outcome run = box.Run("run m.onnx");
  CHECK(run.exit_code == 3);
  CHECK(Contains(run.err, "error: m.onnx: Add 'odd': "));
  CHECK(Contains(run.err,
                 "\nhint: n=1, s=8 are guesses: --dim NAME=N sets others\n"));
  CHECK(box.Run("run m.onnx --dim s=3").exit_code == 0);
}

TEST_CASE("run's errors have exit codes and name what they are about",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kSums);
  WriteFloats(box / "shape/input_0.pb", {2, 2}, {0, 0, 1, 1});
  WriteFile(box / "cut/input_0.pb", "\xff\xff");
  WriteFile(box / "npy/a.npy", "\x93NUMPY");
  const struct {
    const char* arguments;
    int exit_code;
    const char* error;
  } cases[] = {
      {"none.onnx", 4, "error: none.onnx: no such file or directory\n"},
      {"m.onnx --inputs none", 4, "error: none: no such file or directory\n"},
      {"m.onnx --inputs shape", 3,
       "error: shape/input_0.pb: input 'a': expected float[n,4], found "
       "float[2,2]\nhint: --inputs DIR can hold input_0.pb or a.npy for 'a' "},
      {"m.onnx --inputs cut", 3, "error: cut/input_0.pb: is no TensorProto\n"},
      {"m.onnx --inputs npy", 3, "error: npy/a.npy: ends within its header\n"},
      {"m.onnx --dim n", 2, "error: --dim n: expected NAME=NUMBER, such as"},
      {"m.onnx --dim n=-1", 2, "error: --dim n=-1: expected NAME=NUMBER"},
      {"m.onnx --dim n=9999999999999999999", 2, "error: --dim n=99999999999"},
      {"m.onnx --dim k=1", 2, "error: --dim k: no input has this symbolic"},
      {"m.onnx --threads 0", 2, "error: --threads: "},
      {"m.onnx --format txt", 2, "error: --format: txt not in {pb,npy}\n"},
      {"m.onnx --seed x", 2,
       "error: --seed: x is not a whole number from 0 to "
       "18446744073709551615\n"},
      {"m.onnx --threads 0x2", 2, "error: --threads: 0x2 is not a whole "},
      {"m.onnx --inputs ''", 2,
       "error: --inputs: expected a path, found an empty word\n"},
      {"m.onnx --outputs ''", 2,
       "error: --outputs: expected a path, found an empty word\n"},
      {"m.onnx --outputs m.onnx/out", 4, "error: m.onnx/out: "},
  };
  for (const auto& row : cases) {
    const Outcome run = box.Run(std::string("run ") + row.arguments);
    INFO(row.arguments << ": " << run.err);
    CHECK(run.exit_code == row.exit_code);
    CHECK(Contains(run.err, row.error));
    CHECK(run.out.empty());
    const Json json =
        Json::parse(box.Run(std::string("run --json ") + row.arguments).out);
    CHECK(json["exit_code"] == row.exit_code);
  }
}

TEST_CASE("files that are no input's are a wrong request, in each command",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kSums);
  WriteFloats(box / "in/input_0.pb", {1, 4}, {0, 0, 1, 1});
  WriteFile(box / "in/input_7.pb", "");
  WriteFile(box / "none/readme.txt", "");
  for (const char* command :
       {"run m.onnx", "verify m.onnx m.onnx", "bench m.onnx --seconds 0.01"}) {
    INFO(command);
    const Outcome extra = box.Run(std::string(command) + " --inputs in");
    CHECK(extra.exit_code == 2);
    CHECK(Contains(extra.err,
                   "error: in/input_7.pb: is the file of no input; "
                   "did you mean 'input_0.pb'?\nhint: "));
    const Outcome none = box.Run(std::string(command) + " --inputs none");
    CHECK(none.exit_code == 2);
    CHECK(Contains(none.err,
                   "error: none: has no file of an input, found "
                   "'readme.txt'\nhint: --inputs DIR can hold "));
  }
}

TEST_CASE("run reads the model from standard input, and ONNX text", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kSums);
  WriteFile(box / "m.onnxtxt", kSums);
  CHECK(Contains(box.Run("run - < m.onnx").out, "outputs\n"));
  CHECK(Contains(box.Run("run m.onnxtxt").out, "outputs\n"));
}

TEST_CASE("run --profile has a row for each operator and node", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kSums);
  const Outcome run = box.Run("run m.onnx --profile");
  CHECK(Contains(run.out, "\nprofile\n"));
  CHECK(Contains(run.out, "\noperator  runs"));
  CHECK(Contains(run.out, "\nAdd          2"));
  CHECK(Contains(run.out, "\nAdd 'first'      1"));
  const Json profile =
      Json::parse(box.Run("run m.onnx --profile --json").out)["profile"];
  CHECK(profile["ops"].size() == 2);
  CHECK(profile["nodes"].size() == 3);
  double sum = 0;
  for (const Json& node : profile["nodes"])
    sum += node["seconds"].get<double>();
  CHECK(profile["seconds"].get<double>() == Approx(sum));
}

TEST_CASE("run --plan says what takes over whose buffer and what dies",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kSums);
  const std::string command = "run m.onnx --dim n=1000 --plan";
  const Outcome run = box.Run(command);
  CHECK(Contains(run.out, "    1  Add 'first'\n       s (16.0 kB)\n"));
  CHECK(Contains(run.out, "       t takes over s (16.0 kB)\n       dies: s\n"));
  // All three, the one that holds most first.
  CHECK(run.out.find("    3  Mul 'last'") < run.out.find("    1  Add 'first'"));
  CHECK(run.out.find("naive peak") < run.out.find("    3  Mul 'last'"));
  CHECK(Contains(run.out, "naive peak      48.0 kB"));
  CHECK(Contains(run.out, "weights        16 bytes  apart\n"));
  const Json plan = Json::parse(box.Run(command + " --json").out)["plan"];
  CHECK(plan["naive_peak_bytes"] == 48000);
  CHECK(plan["lifetime_peak_bytes"] == 32000);
  CHECK(plan["planned_peak_bytes"] == plan["measured_peak_bytes"]);
  CHECK(plan["weight_bytes"] == 16);
  const Json& second = plan["steps"][1];
  CHECK(second["node"] == "Add 'second'");
  CHECK(second["outputs"][0]["buffer"] == "taken over");
  CHECK(second["outputs"][0]["from"] == "s");
  CHECK(second["dies"] == Json({"s"}));
}

TEST_CASE("run --plan shows few steps of many, the largest first", "[cli]") {
  const Sandbox box;
  // Node i makes a value of i elements that the next one reads.
  std::string nodes = "[n0] v0 = Identity(x)\n";
  for (int i = 1; i < 40; ++i)
    nodes += fmt::format("[n{}] v{} = Concat<axis = 0>(v{}, x)\n", i, i, i - 1);
  WriteModel(box / "m.onnx", fmt::format(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[100] x) => (float[n] y) {{ {} [last] y = Identity(v39) }})",
                                         nodes));
  const auto count = [](const std::string& text) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find("  holds ", at)) != std::string::npos;
         ++at)
      ++found;
    return found;
  };
  const std::string few = box.Run("run m.onnx --plan").out;
  CHECK(count(few) == 10);
  CHECK(Contains(few, "… and 31 more (-v and --json have all)\n"));
  CHECK(few.find("Concat 'n39'") < few.find("Concat 'n38'"));
  const std::string all = box.Run("run m.onnx --plan -v").out;
  CHECK(count(all) == 41);
  CHECK(all.find("Identity 'n0'") < all.find("Concat 'n39'"));
}

TEST_CASE("run shows integers as they are", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main () => (int64[3] a, uint64[2] b)
    <int64[3] x = {9007199254740993, -9223372036854775807, 9223372036854775807},
     uint64[2] z = {18446744073709551615, 18446744073709551613}>
    { a = Identity(x) b = Identity(z) })");
  const std::string text = box.Run("run m.onnx").out;
  CHECK(Contains(text,
                 "-9223372036854775807   9223372036854775807   3.0024e+15"));
  CHECK(Contains(text, "  9007199254740993, -9223372036854775807, 92233720"));
  const Json json = Json::parse(box.Run("run m.onnx --json").out);
  CHECK(json["outputs"][0]["max"] == 9223372036854775807);
  CHECK(json["outputs"][0]["first"][0] == 9007199254740993);
  // Of the exact sum: 9007199254740993 / 3.
  CHECK(json["outputs"][0]["mean"] == 3002399751580331.0);
  CHECK(json["outputs"][1]["min"] == 18446744073709551613U);
}

TEST_CASE("run refuses nodes that are not as ONNX has them", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[2] a, bool c) => (float[2] y) {
      [choice] y = If(c)<then_branch = g () => (float[2] t) { t = Neg(a) }>
    })");
  const Outcome run = box.Run("run m.onnx");
  CHECK(run.exit_code == 3);
  CHECK(run.err ==
        "error: m.onnx: If 'choice' (of version 16): attribute "
        "'else_branch' is missing, expected a value of type graph\n");
  CHECK(Json::parse(box.Run("run m.onnx --json").out)["exit_code"] == 3);
  // There is nothing to fuse, and nothing to run.
  CHECK(box.Run("optimize m.onnx out.onnx").exit_code == 0);
  const Outcome verify = box.Run("verify m.onnx out.onnx");
  CHECK(verify.exit_code == 0);
  CHECK(Contains(verify.out, "not compared: A: If 'choice'"));
}

TEST_CASE("run says where declared types and shapes are false", "[cli]") {
  const Sandbox box;
  WriteModel(box / "shape.onnx", R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[n, 2] a, int64 k) => (float[m, 3] y, float[p, 2] z)
    <float[1, 1, 1] s, float[5, 2] t>
    {
      [first] s = Neg(a)
      [again] y = Neg(s)
      t = Loop(k, , s)<body = g (int64 i, bool b, float[n, 2] v)
                              => (bool d, float[7] w)
                        { d = Identity(b) [inner] w = Neg(v) }>
      z = Neg(t)
    })");
  const Outcome run = box.Run("run shape.onnx --dim n=4");
  CHECK(run.exit_code == 0);
  CHECK(run.err ==
        "warning: shape.onnx: Neg 'first': value 's' is declared float[1,1,1], "
        "computed is float[4,2]\n"
        "warning: shape.onnx: Neg 'again': value 'y' is declared float[m,3], "
        "computed is float[4,2]\n"
        "warning: shape.onnx: Neg 'inner': value 'w' is declared float[7], "
        "computed is float[4,2]\n"
        "warning: shape.onnx: Loop making 't': value 't' is declared "
        "float[5,2], computed is float[4,2]\n");
  const Json json =
      Json::parse(box.Run("run shape.onnx --dim n=4 --json 2>/dev/null").out);
  REQUIRE(json["false_declarations"].size() == 4);
  CHECK(json["false_declarations"][1] == Json({{"value", "y"},
                                               {"node", "Neg 'again'"},
                                               {"declared", "float[m,3]"},
                                               {"computed", "float[4,2]"}}));
  WriteModel(box / "type.onnx", R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[2] a) => (float16[2] y) { [odd] y = Neg(a) })");
  const Outcome type = box.Run("run type.onnx --outputs out");
  CHECK(type.exit_code == 3);
  CHECK(type.err ==
        "error: type.onnx: Neg 'odd': value 'y' is declared "
        "float16[2], computed is float[2]\n");
  CHECK_FALSE(fs::exists(box / "out"));
}

TEST_CASE("run warns of few false declarations of many", "[cli]") {
  const Sandbox box;
  std::string nodes, types;
  for (int i = 0; i < 9; ++i) {
    nodes += fmt::format("v{} = Neg(a) ", i);
    types += fmt::format("{}float[{}] v{}", i == 0 ? "" : ", ", i + 3, i);
  }
  WriteModel(box / "m.onnx", fmt::format(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[2] a) => (float[2] y) <{}> {{ {} y = Neg(a) }})",
                                         types, nodes));
  const std::string few = box.Run("run m.onnx").err;
  CHECK(std::count(few.begin(), few.end(), '\n') == 6);
  CHECK(Contains(few,
                 "warning: m.onnx: 4 more values are not as declared (-v "
                 "and --json have all)\n"));
  CHECK(Contains(box.Run("run m.onnx -v").err, "value 'v8' is declared"));
}

TEST_CASE("errors say what they mean", "[cli]") {
  const Sandbox box;
  const auto error = [&](std::string_view text, const char* options = "") {
    WriteModel(box / "m.onnx",
               fmt::format("<ir_version: 8, opset_import: [\"\" : 17, \"my\" "
                           ": 1]> {}",
                           text));
    return box.Run(std::string("run m.onnx ") + options).err;
  };
  constexpr std::string_view kCast =
      "g (float[2] a) => (string[2] y) { [c] y = Cast<to = 8>(a) }";
  CHECK(Contains(error(kCast),
                 "error: m.onnx: Cast 'c': elements of type string\n"));
  WriteFile(box / "empty/input_0.pb", "");
  CHECK(error(kCast, "--inputs empty") ==
        "error: empty/input_0.pb: is empty, expected a TensorProto\n");
  WriteModel(box / "model/input_0.pb", kSums);
  CHECK(error(kCast, "--inputs model") ==
        "error: model/input_0.pb: is no TensorProto\n");
}

// Functions F0 to Fn, each called by the one before; the last one's node fails.
std::string Chain(int depth) {
  std::string text = "g (float[2] a) => (float[2] y) { [c0] y = my.F0(a) }";
  for (int i = 0; i <= depth; ++i) {
    const std::string call =
        i < depth ? fmt::format("[c{}] r = my.F{}(a)", i + 1, i + 1)
                  : "k = Constant<value_floats = [1.0, 2.0, 3.0]>() "
                    "[odd] r = Add(a, k)";
    text += fmt::format(
        "<domain: \"my\", opset_import: [\"\" : 17, \"my\" : 1]> F{} (a) => "
        "(r) {{ {} }}",
        i, call);
  }
  return text;
}

TEST_CASE("an error in nested functions names them once", "[cli]") {
  const Sandbox box;
  const auto error = [&](int depth) {
    WriteModel(box / "m.onnx",
               "<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]>" +
                   Chain(depth));
    return box.Run("run m.onnx").err;
  };
  const std::string what =
      ": operands of shapes [2] and [3] do not broadcast\n";
  CHECK(error(0) == "error: m.onnx: Add 'odd' in F0 'c0'" + what);
  CHECK(error(2) ==
        "error: m.onnx: Add 'odd' in F2 'c2' in F1 'c1' in F0 "
        "'c0'" +
            what);
  CHECK(error(9) ==
        "error: m.onnx: Add 'odd' in F9 'c9' in F8 'c8' in 7 more "
        "in F0 'c0'" +
            what);
}

}  // namespace
}  // namespace addnorm::tests
