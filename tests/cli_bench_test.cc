// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// bench from outside, in as little time as it can be asked to take: what it
// prints, not how long anything took.
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/pair_arms.h"
#include "tests/support/catch.h"
#include "tests/support/sandbox.h"
#include "tool/bench_kernel.h"
#include "tool/bench_restarts.h"
#include "tool/machine_facts.h"
#include "tool/report.h"

namespace addnorm::tests {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSite = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  main (float[n,64] a, float[n,64] b) => (float[n,64] y, float[n,64] s)
  <float[64] w = {WEIGHT}, float two = {2}, float eps = {0.00001}>
  {
    s = Add(a, b)
    q = Pow(s, two)
    m = ReduceMean<axes = [-1], keepdims = 1>(q)
    e = Add(m, eps)
    r = Sqrt(e)
    d = Div(s, r)
    y = Mul(d, w)
  })";

std::string Site() {
  std::string model(kSite), weight;
  for (int i = 0; i < 64; ++i) weight += (i == 0 ? "1" : ", 1.5");
  return model.replace(model.find("WEIGHT"), 6, weight);
}

constexpr std::string_view kNoSite = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  main (float[2] a) => (float[2] y) { y = Add(a, a) })";

// One small case of --kernel.
constexpr const char* kSmall =
    "bench --kernel --shapes 3x64 --types f32 --seconds 0.02 --caches ";

TEST_CASE("bench --kernel prints a table in 100 columns", "[cli][bench]") {
  const Sandbox box;
  const Outcome run = box.Run(std::string(kSmall) + "warm,cold");
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  for (const char* part :
       {"f32 3x64, reciprocal, ", "warm caches\n", "cold caches\n",
        "unfused again", "fused in place", "streaming copy", "noise ", "limit ",
        "fusing      plain stores: ", "summary: fused against", "governor ",
        "memory ", "-ffp-contract=off\n", " bench --kernel --shapes 3x64 "})
    CHECK(Contains(run.out, part));
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);)
    CHECK(tool::Columns(line) <= 100);
}

TEST_CASE("bench --kernel --json has every raw time", "[cli][bench]") {
  const Sandbox box;
  const Json json = Json::parse(
      box.Run(std::string(kSmall) + "producer --threads 1,2 --json").out);
  CHECK(json["schema"] == "onnx-addnorm/bench/1");
  for (const char* key :
       {"cpu", "cores", "l1_bytes", "l2_bytes", "simd", "governor",
        "memory_bytes", "compiler", "flags", "date", "command"})
    CHECK(json["machine"].contains(key));
  CHECK(Contains(json["machine"]["command"].get<std::string>(),
                 "bench --kernel --shapes 3x64"));
  REQUIRE(json["cases"].size() == 2);
  const Json& first = json["cases"][0];
  CHECK(first["cache"] == "producer");
  CHECK(first["threads"] == 1);
  CHECK(first["tensor_bytes"] == 3 * 64 * 4);
  CHECK_FALSE(first["limit"].get<std::string>().empty());
  REQUIRE(json["arithmetic"].size() == 4);
  for (const Json& roof : json["arithmetic"])
    CHECK(roof["operations_per_second"] > 1e7);
  REQUIRE(first["arms"].size() == runtime::kPairArmCount);
  for (const Json& arm : first["arms"]) {
    REQUIRE(arm["seconds"].size() == 1);
    CHECK(arm["seconds"][0].size() == first["rounds"]);
  }
  CHECK(first["arms"][0]["modelled_bytes"] == 7 * 3 * 64 * 4);
  const Json& comparison = first["arms"][4]["comparison"];
  CHECK(comparison["base"] == "unfused");
  for (const char* key : {"ratio", "interval", "noise", "verdict", "words"})
    CHECK(comparison.contains(key));
  for (const size_t arm : {0, 1, 2, 3, 7, 8, 9, 10})
    CHECK_FALSE(first["arms"][arm].contains("comparison"));
  CHECK(json["headline"].is_string());
}

TEST_CASE("bench --kernel takes every type and recipe", "[cli][bench]") {
  const Sandbox box;
  const Json json = Json::parse(
      box.Run("bench --kernel --shapes 1x1,2x33 --types f32,f16,bf16,f64 "
              "--recipes reciprocal,divide,late --caches warm "
              "--seconds 0.002 --json")
          .out);
  CHECK(json["exit_code"] == 0);
  CHECK(json["cases"].size() == 24);
}

TEST_CASE("bench MODEL says what the sites are in the whole", "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", Site());
  const Outcome run = box.Run("bench m.onnx --seconds 0.2 --dim n=3");
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  CHECK(Contains(run.out, "1 site, "));
  CHECK(Contains(run.out, "n=3\n"));
  CHECK(
      Contains(run.out, "outputs     fused and unfused have the same bits\n"));
  CHECK(Contains(run.out, "share       the sites are "));
  CHECK(Contains(run.out, "end to end  fused: "));
  const Json json =
      Json::parse(box.Run("bench m.onnx --seconds 0.2 --json").out);
  CHECK(json["sites"] == 1);
  CHECK(json["sites_fused_before"] == 0);
  CHECK(json["has_same_bits"] == true);
  CHECK(json["cases"][0]["what"] == "end to end");
  const double whole = json["cases"][0]["arms"][0]["median_seconds"];
  const double sites = json["cases"][1]["arms"][0]["median_seconds"];
  CHECK(sites > 0);
  // In rounds of their own: on a busy machine not always less than the whole.
  CHECK(sites > 0);
  CHECK(whole > 0);
}

TEST_CASE("bench measures a fused model against its bodies", "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", Site());
  box.Run("optimize m.onnx fused.onnx");
  const Json json =
      Json::parse(box.Run("bench fused.onnx --seconds 0.1 --json").out);
  CHECK(json["sites"] == 1);
  CHECK(json["sites_fused_before"] == 1);
  CHECK(json["has_same_bits"] == true);
}

TEST_CASE("bench MODEL has the peaks of memory that run has", "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", Site());
  box.Run("optimize m.onnx fused.onnx");
  const auto peak = [&](const std::string& model) {
    return Json::parse(box.Run("run " + model + " --dim n=3 --json").out)
        .at("peak_bytes");
  };
  const Json json =
      Json::parse(box.Run("bench m.onnx --dim n=3 --seconds 0.02 --json").out);
  CHECK(json["unfused_peak_bytes"] == peak("m.onnx"));
  CHECK(json["fused_peak_bytes"] == peak("fused.onnx"));
}

TEST_CASE("bench has nothing to measure in a model without sites",
          "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kNoSite);
  const Outcome run = box.Run("bench m.onnx");
  CHECK(run.exit_code == 0);
  CHECK(run.out.starts_with("m.onnx: Nothing to fuse: no residual Add "));
  CHECK(Contains(run.out, "so nothing was"));
  const Json json = Json::parse(box.Run("bench m.onnx --json").out);
  CHECK(json["cases"].empty());
  CHECK(json["sites"] == 0);
  CHECK(json["headline"].get<std::string>().starts_with("Nothing to fuse: "));
}

TEST_CASE("bench --restarts measures in further processes", "[cli][bench]") {
  const Sandbox box;
  const Json json = Json::parse(
      box.Run(std::string(kSmall) + "warm --restarts 3 --json").out);
  CHECK(json["cases"][0]["arms"][6]["seconds"].size() == 3);
  WriteModel(box / "m.onnx", Site());
  CHECK(Json::parse(box.Run("bench m.onnx --seconds 0.05 --restarts=2 --json")
                        .out)["cases"][1]["arms"][2]["seconds"]
            .size() == 2);
}

TEST_CASE("a restarted command asks for JSON and no restarts", "[bench]") {
  CHECK(tool::RestartCommand({"t", "bench", "--restarts", "5", "m.onnx"}) ==
        std::vector<std::string>{"t", "bench", "--json", "-q", "m.onnx"});
  CHECK(tool::RestartCommand({"t", "-v", "bench", "m.onnx", "--restarts=5"}) ==
        std::vector<std::string>{"t", "-v", "bench", "--json", "-q", "m.onnx"});
  CHECK(tool::RestartCommand({"t", "bench", "--html", "p.html", "--force",
                              "--kernel", "--restarts", "2", "--html=q"}) ==
        std::vector<std::string>{"t", "bench", "--json", "-q", "--kernel"});
}

TEST_CASE("bench --html writes a page beside what it prints", "[cli][bench]") {
  const Sandbox box;
  const Outcome run =
      box.Run(std::string(kSmall) + "warm --restarts 2 --html page.html");
  CHECK(run.exit_code == 0);
  CHECK(Contains(run.out, "summary: fused against"));
  CHECK(Contains(run.out, "\npage: page.html ("));
  const std::string page = ReadFile(box / "page.html");
  CHECK(page.starts_with("<!doctype html>\n"));
  CHECK(page.ends_with("</html>\n"));
  // One size: what shows more.
  CHECK(Contains(page, "bench --kernel --shapes cliff"));
  // The object is that of --json.
  const size_t begin = page.find("id=\"report\">") + 12;
  const Json report =
      Json::parse(page.substr(begin, page.find("</script>") - begin));
  CHECK(report["schema"] == "onnx-addnorm/bench/1");
  CHECK(report["cases"][0]["arms"][0]["seconds"].size() == 2);
}

TEST_CASE("bench --html replaces a page only with --force", "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", Site());
  const std::string model = ReadFile(box / "m.onnx");
  WriteFile(box / "page.html", "mine");
  const std::string bench = "bench m.onnx --seconds 0.02 --html ";
  const Outcome refused = box.Run(bench + "page.html");
  CHECK(refused.exit_code == 2);
  CHECK(refused.out.empty());
  CHECK(Contains(refused.err,
                 "page.html: exists already\nhint: --force replaces it"));
  CHECK(ReadFile(box / "page.html") == "mine");
  CHECK(box.Run(bench + "page.html --force").exit_code == 0);
  CHECK(
      Contains(ReadFile(box / "page.html"), "<h1>What fusing gains in m.onnx"));
  // The model itself is not replaced, whatever is asked for.
  const Outcome itself = box.Run(bench + "m.onnx --force");
  CHECK(itself.exit_code == 2);
  CHECK(Contains(itself.err, "is the input model, which is never overwritten"));
  CHECK(ReadFile(box / "m.onnx") == model);
  CHECK(box.Run(bench + "none/page.html").exit_code == 4);
}

TEST_CASE("bench --html - puts the page on stdout and the text on stderr",
          "[cli][bench]") {
  const Sandbox box;
  const Outcome run = box.Run(std::string(kSmall) + "warm --html -");
  CHECK(run.exit_code == 0);
  CHECK(run.out.starts_with("<!doctype html>\n"));
  CHECK(run.out.ends_with("</html>\n"));
  CHECK(Contains(run.err, "summary: fused against"));
  const Outcome both = box.Run("bench --kernel --html - --json");
  CHECK(both.exit_code == 2);
  CHECK(Contains(both.err, "--html - and --json both need standard output"));
}

TEST_CASE("bench --html has a page for a model without sites", "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kNoSite);
  CHECK(box.Run("bench m.onnx --html page.html").exit_code == 0);
  CHECK(Contains(ReadFile(box / "page.html"), "Nothing to fuse"));
}

TEST_CASE("bench --shapes cliff goes from the first cache to beyond the last",
          "[bench]") {
  const auto shapes = *tool::ParseShapes({"cliff"});
  const tool::MachineFacts machine = tool::GatherMachineFacts();
  REQUIRE(shapes.size() >= 5);
  const auto bytes = [](const tool::RowsShape& shape) {
    return shape.rows * shape.length * 4 * 4;  // four tensors of floats
  };
  CHECK(bytes(shapes.front()) == 16 << 10);
  for (size_t i = 1; i < shapes.size(); ++i)
    CHECK(bytes(shapes[i]) == 4 * bytes(shapes[i - 1]));
  CHECK((bytes(shapes.back()) >= 2 * machine.last_level_cache ||
         bytes(shapes.back()) >= machine.memory / 8));
}

TEST_CASE("bench refuses what it cannot measure", "[cli][bench]") {
  const Sandbox box;
  WriteModel(box / "m.onnx", kNoSite);
  const std::vector<std::pair<const char*, const char*>> refused = {
      {"bench", "error: what is to be measured?\nhint: give a MODEL, or "},
      {"bench m.onnx --kernel", "error: --kernel measures the pair by itself"},
      {"bench m.onnx --types f32", "are for --kernel\n"},
      {"bench m.onnx --threads 1,2", "a list is for --kernel"},
      {"bench - --restarts 2", "standard input cannot be read again"},
      {"bench --kernel --dim n=2", "--inputs and --dim are for a MODEL"},
      {"bench --kernel --shapes 12",
       "--shapes: '12' is none of them\nhint: it "
       "takes ROWSxLENGTH, such as 512x4096"},
      {"bench --kernel --shapes 0x4", "--shapes: '0x4'"},
      {"bench --kernel --shapes 1x9999999999999", "--shapes: '1x999"},
      {"bench --kernel --types f8", "hint: it takes f32, f16, bf16, f64\n"},
      {"bench --kernel --caches hot", "hint: it takes warm, cold, producer\n"},
      {"bench --kernel --recipes x", "hint: it takes reciprocal, divide, late"},
      {"bench --kernel --seconds 0",
       "--seconds: 0 is not a number from 0.001 to 1000000\n"},
      {"bench --kernel --seconds -1", "--seconds: -1 is not a number from"},
      {"bench --kernel --seconds nan", "--seconds: nan is not a number from"},
      {"bench --kernel --seconds inf", "--seconds: inf is not a number from"},
      {"bench --kernel --threads 0",
       "--threads: 0 is not a whole number from 1"},
      {"bench m.onnx --inputs ''", "--inputs: expected a path, found an empty"},
      {"bench m.onnx --against ''", "--against: expected a path, found an "},
      {"bench --kernel --ort ''", "--ort: expected a path, found an empty"},
      {"bench --kernel --html ''", "--html: expected a path, found an empty"},
      {"bench --kernel --force", "--force is for the file of --html"}};
  for (const auto& [command, message] : refused) {
    const Outcome run = box.Run(command);
    INFO(command << "\n" << run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    CHECK(Contains(run.err, message));
  }
  const Outcome large = box.Run("bench --kernel --shapes 1000000x1000000");
  CHECK(large.exit_code == 4);
  CHECK(Contains(large.err, "of memory are available"));
  CHECK(box.Run("bench none.onnx").exit_code == 4);
}

}  // namespace
}  // namespace addnorm::tests
