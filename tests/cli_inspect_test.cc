// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// inspect from outside.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/sandbox.h"

namespace addnorm::tests {

namespace fs = std::filesystem;
using Json = nlohmann::json;

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

TEST_CASE("inspect names the producer where the model does", "[cli]") {
  const Sandbox box;
  const auto inspect = [&](std::string_view fields, std::string_view options) {
    WriteModel(box / "m.onnx",
               fmt::format(R"(<ir_version: 8, opset_import: ["" : 17]{}>
                              main (float a) => (float b) {{ b = Neg(a) }})",
                           fields));
    return box.Run(fmt::format("inspect m.onnx {}", options)).out;
  };
  const std::string_view both =
      R"(, producer_name: "pytorch", producer_version: "2.5")";
  CHECK(Contains(inspect(both, ""), "producer    pytorch 2.5\n"));
  CHECK(Json::parse(inspect(both, "--json"))["producer"] ==
        Json({{"name", "pytorch"}, {"version", "2.5"}}));
  CHECK(Contains(inspect(R"(, producer_version: "2.5")", ""),
                 "producer    2.5\n"));
  CHECK(!Contains(inspect("", ""), "producer"));
  CHECK(Json::parse(inspect("", "--json"))["producer"]["name"] == "");
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
  const Outcome text = box.Run("inspect m.onnx --text");
  CHECK(Contains(text.out, "<float eps = {1e-05}, float two = {2.0}> {\n"));
  CHECK(Contains(text.out, "  [residual] s = Add(a, b)\n"));
  CHECK(box.Run("inspect m.onnx --nodes Sqrt").out == "rms = Sqrt(mse)\n");
  const Outcome run = box.Run("inspect m.onnx --nodes Sqr");
  CHECK(run.exit_code == 1);
  CHECK(run.err ==
        "error: m.onnx: no node of operator 'Sqr'\n"
        "hint: inspect without --nodes lists the operators\n");
}

TEST_CASE("inspect --nodes ignores case and domain, and says where nodes are",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", R"(
    <ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    main (float[2] a, bool c) => (float[2] y) {
      s = my.Twice(a)
      [choose] y = If(c) <then_branch = t () => (float[2] u) { u = Neg(s) },
                          else_branch = e () => (float[2] v) { v = Abs(s) }>
    }
    <domain: "my", opset_import: ["" : 17]>
    Twice (x) => (z) { n = Neg(x) z = Neg(n) })");
  CHECK(box.Run("inspect m.onnx --nodes neg").out ==
        "n = Neg(x)  # in function 'my::Twice'\n"
        "z = Neg(n)  # in function 'my::Twice'\n"
        "u = Neg(s)  # in then_branch of If 'choose'\n");
  for (const char* op : {"my.Twice", "twice", "MY.TWICE"})
    CHECK(box.Run(std::string("inspect m.onnx --nodes ") + op).out ==
          "s = my.Twice(a)\n");
}

TEST_CASE("inspect reads ONNX text too", "[cli]") {
  const Sandbox box;
  WriteFile(box / "m.onnxtxt", kModel);
  CHECK(Contains(box.Run("inspect m.onnxtxt").out, "can fuse 1 of 1 site"));
  CHECK(Contains(box.Run("inspect - <m.onnxtxt").out, "can fuse 1 of 1 site"));
  WriteFile(box / "w.onnxtxt", kExternalWeight);
  WriteFile(box / "w.bin", std::string(32, '\0'));
  CHECK(Contains(box.Run("inspect w.onnxtxt").out,
                 "external    1 tensor, 32 bytes\n"));
}

TEST_CASE("inspect says of a site that it can be fused", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  CHECK(Contains(box.Run("inspect m.onnx").out,
                 "\ncan be fused     Add 'residual'\n"));
  const Json json = Json::parse(box.Run("inspect m.onnx --json").out);
  CHECK(json["sites"][0]["verdict"] == "fused");
}

TEST_CASE("inspect says where external data were looked for, or fall short",
          "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kExternalWeight);
  const Outcome missing = box.Run("inspect m.onnx");
  CHECK(missing.exit_code == 4);
  CHECK(missing.err ==
        "error: m.onnx: tensor 'w': external data file 'w.bin' (looked for in "
        "'.'): no such file or directory\n"
        "hint: it holds weights of the model: put it there\n");
  WriteFile(box / "w.bin", "short");
  const Outcome cut = box.Run("inspect m.onnx");
  CHECK(cut.exit_code == 3);
  CHECK(cut.err ==
        "error: m.onnx: tensor 'w': needs bytes 0 to 32 of 'w.bin', which has "
        "5\n"
        "hint: 'w.bin' is incomplete or another model's: copy or download it "
        "again\n");
}

}  // namespace addnorm::tests
