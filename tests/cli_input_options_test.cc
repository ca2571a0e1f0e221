// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Options of all commands that run models: the same slips, the same answers.
#include <string>
#include <utility>

#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/sandbox.h"

namespace addnorm::tests {
namespace {

using Json = nlohmann::json;

constexpr const char* kCommands[] = {"run m.onnx ", "verify m.onnx m.onnx ",
                                     "bench m.onnx --seconds 0.02 "};

constexpr const char* kRows = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  main (float[rows,2] a) => (float[rows,2] y) { y = Neg(a) })";

TEST_CASE("run, verify and bench refuse the same input options", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kRows);
  const std::pair<const char*, const char*> refused[] = {
      {"--inputs ''", "--inputs: expected a path, found an empty word\n"},
      {"--dim rows=-1", "--dim rows=-1: expected NAME=NUMBER"},
      {"--dim rows", "--dim rows: expected NAME=NUMBER"},
      {"--dim ''", "--dim : expected NAME=NUMBER"},
      {"--dim row=2", "--dim row: no input has this symbolic dimension"},
      {"--threads 0", "--threads: 0 is not a whole number from 1 to 1024\n"},
      {"--threads nan", "--threads: nan is not a whole number from"}};
  for (const char* command : kCommands) {
    for (const auto& [option, message] : refused) {
      const Outcome run = box.Run(std::string(command) + option);
      INFO(command << option << "\n" << run.err);
      CHECK(run.exit_code == 2);
      CHECK(run.out.empty());
      CHECK(Contains(run.err, message));
    }
  }
  CHECK(box.Run("run m.onnx --outputs ''").exit_code == 2);
  CHECK(box.Run("verify m.onnx m.onnx --reduce ''").exit_code == 2);
}

TEST_CASE("run, verify and bench take a dimension of 0", "[cli]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kRows);
  for (const char* command : kCommands)
    CHECK(box.Run(std::string(command) + "--dim rows=0").exit_code == 0);
  const Json json =
      Json::parse(box.Run("bench m.onnx --against m.onnx --seconds 0.02 --dim "
                          "rows=0 --json")
                      .out);
  CHECK(json["dims"][0]["value"] == 0);
  CHECK(json["others"][0]["has_same_bits"] == true);
}

}  // namespace
}  // namespace addnorm::tests
