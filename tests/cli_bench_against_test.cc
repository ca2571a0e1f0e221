// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// bench --against from outside: other models, ONNX Runtime where there is one,
// and what the JSON has of them.
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/pair_arms.h"
#include "tests/support/catch.h"
#include "tests/support/sandbox.h"
#include "tool/onnx_runtime.h"

namespace addnorm::tests {
namespace {

using Json = nlohmann::json;

constexpr const char* kShort = " --threads 1 --seconds 0.05 ";

Json Bench(const Sandbox& box, const std::string& arguments) {
  const Outcome run = box.Run("bench " + arguments + kShort + "--json");
  INFO(run.out);
  REQUIRE(run.exit_code == 0);
  return Json::parse(run.out);
}

std::vector<std::string> ArmNames(const Json& json) {
  std::vector<std::string> names;
  for (const Json& arm : json["cases"][0]["arms"]) names.push_back(arm["name"]);
  return names;
}

// A model with one thing changed.
std::string Changed(std::string_view from, std::string_view to,
                    std::string text = std::string(kModel)) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// m.onnx, the same fused, and one with another epsilon.
void WriteModels(const Sandbox& box) {
  WriteModel(box / "m.onnx", kModel);
  box.Run("optimize m.onnx fused.onnx");
  WriteModel(box / "other.onnx", Changed("1e-5", "2e-5"));
}

TEST_CASE("bench --against measures another model in the same rounds",
          "[cli][bench]") {
  const Sandbox box;
  WriteModels(box);
  const Json json =
      Bench(box, "m.onnx --against fused.onnx --against other.onnx");
  CHECK(ArmNames(json) == std::vector<std::string>{"unfused", "unfused again",
                                                   "fused", "fused.onnx",
                                                   "other.onnx"});
  const size_t rounds = json["cases"][0]["rounds"];
  for (const Json& arm : json["cases"][0]["arms"])
    CHECK(arm["seconds"][0].size() == rounds);
  CHECK(json["cases"][1]["arms"].size() == 3);
  REQUIRE(json["others"].size() == 2);
  CHECK(json["others"][0]["has_same_bits"] == true);
  CHECK(json["others"][1]["has_same_bits"] == false);
  CHECK(json["others"][1]["arm"] == 4);
  CHECK(json["cases"][0]["arms"][4]["comparison"]["base"] == "unfused");
  const Outcome text =
      box.Run("bench m.onnx --against other.onnx" + std::string(kShort));
  CHECK(text.exit_code == 0);
  CHECK(Contains(text.out, "other       other.onnx: other bits in "));
}

// What a reader of the page sees: all but the raw data at its end.
std::string Visible(const Sandbox& box, const std::string& arguments) {
  const Outcome run =
      box.Run("bench " + arguments + kShort + "--html page.html --force");
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const std::string page = ReadFile(box / "page.html");
  return page.substr(0, page.find("<script type=\"application/json\""));
}

TEST_CASE("the page of bench --against shows the other arms and the usage",
          "[cli][bench]") {
  const Sandbox box;
  WriteModels(box);
  const std::string page =
      Visible(box, "m.onnx --against fused.onnx --against other.onnx");
  CHECK(Contains(page, "Other models and runtimes</h2>"));
  CHECK(Contains(page, "<td>the same bits</td>"));
  CHECK(Contains(page, "<td>other bits in "));
  CHECK(Contains(page, "Other programs took "));
  const std::string row = page.substr(page.rfind("other.onnx</td>"));
  CHECK_FALSE(Contains(row.substr(0, row.find("</tr>")), "B</td>"));
  CHECK(Contains(Visible(box, "--kernel --shapes 1x64 --types f32"),
                 "Other programs took "));
}

TEST_CASE("bench --against matches inputs and outputs by name",
          "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  WriteModel(box / "swapped.onnx",
             Changed("main (float[2,8] a, float[2,8] b, float[8] w) => "
                     "(float[2,8] y, float[2,8] z)",
                     "main (float[8] w, float[2,8] b, float[2,8] a) => "
                     "(float[2,8] z, float[2,8] y)"));
  const Json json = Bench(box, "m.onnx --against swapped.onnx");
  CHECK(json["others"][0]["has_same_bits"] == true);
}

TEST_CASE("bench --against refuses a model with another interface",
          "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const std::vector<std::pair<std::string, const char*>> others = {
      {Changed("float[2,8] b", "float[3,8] b"),
       "other.onnx: input 'b' is float[3,8], expected float[2,8] as in MODEL"},
      {Changed("float[8] w", "float16[8] w"), "input 'w' is float16[8]"},
      {Changed("[2,8] b, float[8] w)", "[2,8] b, float[8] w, float[2] c)"),
       "other.onnx: input 'c' is not one of MODEL's: 'a', 'b', 'w'"},
      {Changed("Add(a,", "Add(first,", Changed("8] a", "8] first")),
       "other.onnx: has no input 'a', which MODEL has; found 'first', 'b'"},
      {Changed(", float[2,8] z)", ")"),
       "other.onnx: has outputs 'y', expected 'y', 'z' as in MODEL"}};
  for (const auto& [text, message] : others) {
    WriteModel(box / "other.onnx", text);
    const Outcome run = box.Run("bench m.onnx --against other.onnx");
    INFO(run.err);
    CHECK(run.exit_code == 3);
    CHECK(run.out.empty());
    CHECK(Contains(run.err, message));
  }
  CHECK(box.Run("bench m.onnx --against none.onnx").exit_code == 4);
}

// More than Neg reads.
constexpr const char* kWrongNode = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  main (float[2] a) => (float[2] y) { y = Neg(a, a) })";

TEST_CASE("bench refuses nodes that run refuses, in the same words",
          "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kWrongNode);
  WriteModel(box / "good.onnx", R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[2] a) => (float[2] y) { y = Neg(a) })");
  const Outcome run = box.Run("run m.onnx");
  REQUIRE(Contains(run.err, "m.onnx: Neg making 'y'"));
  for (const char* command :
       {"bench m.onnx", "bench good.onnx --against m.onnx"}) {
    const Outcome bench = box.Run(command + std::string(kShort));
    CHECK(bench.exit_code == 3);
    CHECK(bench.out.empty());
    CHECK(bench.err == run.err);
  }
}

TEST_CASE("bench --against measures a model without sites", "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kNothingToFuse);
  const Json json = Bench(box, "m.onnx --against m.onnx");
  CHECK(json["sites"] == 0);
  CHECK(json["others"][0]["has_same_bits"] == true);
  // No arm is "fused": that would be the model once more.
  CHECK(ArmNames(json) ==
        std::vector<std::string>{"unfused", "unfused again", "m.onnx"});
  CHECK(json["cases"].size() == 1);
  CHECK(json["headline"].get<std::string>().starts_with("Nothing to fuse: "));
  for (const char* key : {"has_same_bits", "site_share", "fused_peak_bytes"})
    CHECK_FALSE(json.contains(key));
  CHECK(Bench(box, "m.onnx --against m.onnx --restarts 2")["cases"][0]["arms"]
                                                          [2]["seconds"]
                                                              .size() == 2);
  const std::string name = "another_model_with_quite_a_long_name.onnx";
  WriteModel(box / name, kNothingToFuse);
  const Outcome text =
      box.Run("bench m.onnx --against " + name + std::string(kShort));
  CHECK(Contains(text.out, "\nno site, so nothing to fuse, 1 thread"));
  CHECK_FALSE(Contains(text.out, "\nfused"));
  CHECK_FALSE(Contains(text.out, " 0 ns"));
  CHECK(Contains(text.out, "\nanother_model_with_qu…  "));
  CHECK(Contains(text.out, "other       " + name + ": the same bits"));
  const std::string page = Visible(box, "m.onnx --against " + name);
  CHECK(Contains(page, "Nothing to fuse: "));
  CHECK(Contains(page, "<dt>For which inputs</dt>"));
  CHECK_FALSE(Contains(page, ">0 bytes</td>"));
  CHECK_FALSE(Contains(page, "<td class=\"number\">0 ns</td>"));
  CHECK_FALSE(Contains(page, ">fused</td>"));
}

TEST_CASE("bench says of a fused model that it came so", "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  box.Run("optimize m.onnx fused.onnx");
  const std::string words = "the model came with 1 site fused already";
  CHECK(Contains(box.Run("bench fused.onnx" + std::string(kShort)).out, words));
  CHECK_FALSE(
      Contains(box.Run("bench m.onnx" + std::string(kShort)).out, words));
  CHECK(Contains(Visible(box, "fused.onnx"), words.substr(1)));
}

TEST_CASE("bench gives no interval for too few rounds", "[cli][bench]") {
  const Sandbox box;
  const Outcome run = box.Run(
      "bench --kernel --shapes 512x4096 --types f32 --caches warm --threads 1 "
      "--seconds 0.001");
  REQUIRE(Contains(run.out, "\n1 round of "));
  CHECK_FALSE(Contains(run.out, " ["));
  CHECK(Contains(run.out, "noise       not known (1 of 6 rounds needed)"));
  CHECK(Contains(run.out, "limit       not told: too few rounds (1)"));
  CHECK(Contains(run.out, "no measurable gain in 0, no verdict in 1 (too few"));
}

TEST_CASE("bench --restarts has the times of other models too",
          "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Json json = Bench(box, "m.onnx --against m.onnx --restarts 3");
  for (const Json& arm : json["cases"][0]["arms"]) {
    REQUIRE(arm["seconds"].size() == 3);
    for (const Json& process : arm["seconds"]) CHECK(!process.empty());
  }
  size_t rounds = 0;
  for (const Json& process : json["cases"][0]["arms"][3]["seconds"])
    rounds += process.size();
  CHECK(json["cases"][0]["rounds"] == rounds);
}

// The path of a library that this program has loaded.
std::filesystem::path LoadedLibrary(std::string_view part) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (Contains(line, part)) return line.substr(line.find('/'));
  }
  FAIL("no library " << part);
  return {};
}

TEST_CASE("a page replaces no model that is measured", "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  WriteModel(box / "m2.onnx", kModel);
  for (const char* page : {"m.onnx", "m2.onnx"}) {
    const Outcome run = box.Run(
        std::string("bench m.onnx --against m2.onnx --force --html ") + page);
    INFO(run.err);
    CHECK(run.exit_code == 2);
  }
  CHECK(box.Run("inspect m2.onnx").exit_code == 0);
}

TEST_CASE("what --ort names is a path, not looked for", "[cli][bench]") {
  const Sandbox box;
  const std::filesystem::path library = LoadedLibrary("/libm");
  // Where the system has it, the name alone would be found.
  const std::string name = library.filename();
  const std::string bench = "bench --kernel --ort " + name;
  const Outcome none = box.Run(bench);
  CHECK(none.exit_code == 4);
  CHECK(Contains(none.err, "error: --ort " + name +
                               ": not a library that can be loaded (./" +
                               name));
  std::filesystem::create_symlink(library, box / name);
  CHECK(Contains(box.Run(bench).err, name + ": not a library of ONNX Runtime"));
}

TEST_CASE("bench says where ONNX Runtime is missing", "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Outcome none = box.Run("bench m.onnx --ort ./none.so");
  CHECK(none.exit_code == 4);
  CHECK(Contains(none.err, "error: --ort ./none.so: not a library"));
  CHECK(Contains(none.err, "hint: --ort PATH names its shared library"));
  const Outcome other =
      box.Run("bench --kernel --ort " + LoadedLibrary("/libm").string());
  CHECK(other.exit_code == 4);
  CHECK(Contains(other.err, "not a library of ONNX Runtime"));
  const Outcome model = box.Run("bench --kernel --against m.onnx");
  CHECK(model.exit_code == 2);
  CHECK(Contains(model.err, "--kernel compares with 'ort', not with a model"));
  CHECK(box.Run("bench m.onnx --against - --restarts 2").exit_code == 2);
}

TEST_CASE("bench pins threads unless told not to, and says what others took",
          "[cli][bench]") {
  const Sandbox box;
  const std::string kernel = "--kernel --shapes 2x64 --types f32 --caches warm";
  const Json pinned = Bench(box, kernel)["cases"][0];
  CHECK(pinned["pinned_to_cores"].size() == 1);
  for (const char* key : {"steal", "others", "involuntary_switches", "seconds"})
    CHECK(pinned["usage"].contains(key));
  CHECK(
      Bench(box, kernel + " --no-pin")["cases"][0]["pinned_to_cores"].empty());
  const Outcome text =
      box.Run("bench --kernel --shapes 2x64 --types f32 --caches warm" +
              std::string(kShort));
  CHECK(Contains(text.out, "on core "));
  CHECK(Contains(text.out, "other programs took "));
  CHECK(Contains(text.out, "copy        fused takes "));
}

TEST_CASE("bench --against ort measures ONNX Runtime in the same rounds",
          "[cli][bench]") {
  if (const auto ort = tool::OnnxRuntime::Open(""); !ort.ok()) {
    WARN("skipped: " << ort.status().message());
    return;
  }
  const Sandbox box;
  WriteModel(box / "m.onnx", kModel);
  const Json json =
      Bench(box, "m.onnx --against ort --against m.onnx --restarts 2");
  CHECK(ArmNames(json) == std::vector<std::string>{
                              "unfused", "unfused again", "fused",
                              "ort unfused", "ort unfused again", "ort fused",
                              "ort own op", "ort m.onnx", "m.onnx"});
  CHECK(json["machine"]["onnx_runtime"].is_string());
  const Json& arms = json["cases"][0]["arms"];
  CHECK(arms[5]["comparison"]["base"] == "ort unfused");
  // Bases, and those once more, are compared with nothing.
  for (const size_t arm : {0, 1, 3, 4})
    CHECK_FALSE(arms[arm].contains("comparison"));
  for (const Json& arm : json["cases"][0]["arms"])
    CHECK(arm["seconds"].size() == 2);
  const Json pair = Bench(
      box, "--kernel --shapes 2x64 --types f32 --caches cold --against ort");
  CHECK(pair["cases"][0]["arms"].size() == runtime::kPairArmCount + 4);
}

TEST_CASE("bench gives ONNX Runtime external data too", "[cli][bench]") {
  if (const auto ort = tool::OnnxRuntime::Open(""); !ort.ok()) {
    WARN("skipped: " << ort.status().message());
    return;
  }
  const Sandbox box;
  WriteFile(box / "in/w.bin", std::string(32, '\0'));
  WriteModel(box / "in/m.onnx", kExternalWeight);
  const Json json = Bench(box, "in/m.onnx --against ort");
  REQUIRE(json["others"].size() == 2);
  CHECK(json["others"][0]["name"] == "ort unfused");
  CHECK(json["others"][0]["has_same_bits"] == true);
  CHECK(json["not_run"].size() == 2);
}

}  // namespace
}  // namespace addnorm::tests
