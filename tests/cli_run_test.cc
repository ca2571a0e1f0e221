// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// run from outside.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

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
      {"m.onnx --seed x", 2, "error: could not convert: --seed = x\n"},
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

}  // namespace
}  // namespace addnorm::tests
