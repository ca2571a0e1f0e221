// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// One verdict for one comparison: what terminal, JSON and page say of times
// that are made up, so that each verdict is known beforehand.
#include <cmath>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/kernels/norm_recipes.h"
#include "runtime/pair_arms.h"
#include "tests/support/catch.h"
#include "tests/support/sandbox.h"
#include "tool/bench_kernel_report.h"
#include "tool/html/page.h"

namespace addnorm::tests {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRounds = 60;

// Rounds of an arm that takes so long, spread by a share of that.
std::vector<double> Times(double seconds, double spread, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> times;
  for (size_t i = 0; i < kRounds; ++i) {
    const double unit = static_cast<double>(random() % 2001) / 1000 - 1;
    times.push_back(seconds * std::exp(unit * spread));
  }
  return times;
}

// By place in kPairArms: unfused, again, streaming, in place; fused, streaming,
// in place; probes.
struct Arms {
  double seconds[runtime::kPairArmCount];
  double spread;
};

tool::KernelCase CaseOf(const Arms& arms) {
  const auto type = ir::DataType::kFloat;
  tool::KernelCase made{
      .recipe = "reciprocal",
      .shape = {512, 4096},
      .setting = {.recipe = runtime::RmsNormalizationRecipe(type, type, type),
                  .rows = 512,
                  .length = 4096,
                  .cache = runtime::CacheState::kCold},
      .tensor_bytes = size_t{512} * 4096 * 4,
      .buffer_sets = 2};
  for (size_t arm = 0; arm < runtime::kPairArmCount; ++arm) {
    const runtime::PairArm& known = runtime::kPairArms[arm];
    made.times.arms.push_back(
        {.name = std::string(known.name),
         .base = known.base,
         .instead = known.instead,
         .processes = {Times(arms.seconds[arm], arms.spread, arm + 1)}});
  }
  return made;
}

struct Told {
  std::string text, page;
  Json json;
};

Told Tell(const Arms& arms) {
  const std::vector<tool::KernelCase> cases = {CaseOf(arms)};
  tool::MachineFacts machine;
  machine.date = "2026-11-30T12:00:00Z";
  Json report = tool::ToJson(cases, machine);
  report["arithmetic"] = Json::array();
  tool::Terminal terminal;
  terminal.width = 400;
  return {tool::ToText(cases, machine, terminal),
          tool::html::KernelPage(report), report};
}

// The cells of the row of the page's table of verdicts.
std::vector<std::string> VerdictCells(const std::string& page) {
  const std::string table =
      page.substr(page.find("<caption>Where fusing is worth it"));
  const std::regex cell("<td>([^<]*)</td>");
  std::vector<std::string> cells;
  for (std::sregex_iterator it(table.begin(), table.end(), cell), end;
       it != end && cells.size() < 4; ++it)
    cells.push_back((*it)[1]);
  return {cells.begin() + 1, cells.end()};  // without the setting
}

constexpr double kProbes = 0.8;

TEST_CASE("terminal, JSON and page have the same verdicts", "[bench]") {
  // Fused plain: 20 % faster. Streaming: faster than unfused streaming, but
  // much slower than plain. In place: slower.
  const Told told = Tell(
      {{1, 1, 4, 0.5, 0.8, 3, 0.7, kProbes, kProbes, kProbes, kProbes}, 0.01});
  const Json& arms = told.json["cases"][0]["arms"];
  const auto verdict = [&](size_t arm) {
    return arms[arm]["comparison"]["verdict"].get<std::string>();
  };
  CHECK(verdict(4) == "faster");
  CHECK(verdict(5) == "of no use");
  CHECK(arms[5]["comparison"]["better"] == "fused");
  CHECK(verdict(6) == "slower");
  for (const size_t arm : {4, 5, 6}) {
    const std::string words = arms[arm]["comparison"]["words"];
    INFO(told.text);
    CHECK(Contains(told.text, ": " + words + "\n"));
    CHECK(Contains(told.page, words));
  }
  const std::vector<std::string> cells = VerdictCells(told.page);
  CHECK(Contains(cells[0], "% faster"));
  CHECK(cells[1] == "of no use");
  CHECK(Contains(cells[2], "% slower"));
  CHECK(Contains(told.text,
                 "  streaming: faster in 0 of 1, slower in 0, no "
                 "measurable gain in 0, of no use in 1 "));
  const std::string headline = told.json["headline"];
  CHECK(Contains(headline, "faster in 1 of 2 comparisons"));
  CHECK(Contains(told.text, headline));
  CHECK(Contains(told.page, "<p class=\"headline\">" + headline));
}

TEST_CASE("streaming is of no use only where plain stores are surely faster",
          "[bench]") {
  // 6 % slower than plain stores, of which the noise hides all.
  const Arms arms{
      {1, 1, 2, 0.5, 1, 1.06, 0.5, kProbes, kProbes, kProbes, kProbes}, 0.4};
  Arms quiet = arms;
  quiet.spread = 0.001;
  CHECK(Tell(quiet).json["cases"][0]["arms"][5]["comparison"]["verdict"] ==
        "of no use");
  const Told told = Tell(arms);
  const Json& comparison = told.json["cases"][0]["arms"][5]["comparison"];
  CHECK(comparison["verdict"] == "faster");
  CHECK(Contains(VerdictCells(told.page)[1], "% faster"));
  CHECK(Contains(told.text, "streaming: faster in 1 of 1"));
}

TEST_CASE("differences have two digits", "[bench]") {
  const auto brief = [](double ratio) {
    return tool::InBrief(
        {.arm = {},
         .base = {},
         .estimate = {.ratio = ratio, .sign = {}, .bootstrap = {}},
         .verdict =
             ratio < 1 ? runtime::Verdict::kFaster : runtime::Verdict::kSlower,
         .better = {}});
  };
  CHECK(brief(0.977) == "2.3 % faster");
  CHECK(brief(0.9004) == "10 % faster");  // not 10.0
  CHECK(brief(1.234) == "23 % slower");
}

TEST_CASE("what is not as modelled is in text, JSON and page", "[bench]") {
  // Fused moves less than unfused and is slower.
  const Told told =
      Tell({{1, 1, 0.7, 0.8, 1.5, 0.6, 0.5, kProbes, kProbes, kProbes, kProbes},
            0.01});
  const Json& found = told.json["cases"][0]["not_as_modelled"];
  REQUIRE(found.size() >= 1);
  CHECK(found[0]["arm"] == "fused");
  CHECK(found[0]["base"] == "unfused");
  CHECK(found[0]["verdict"] == "slower");
  CHECK(Contains(told.text, "not as modelled: fused is slower than unfused"));
  CHECK(Contains(told.page, "Not as modelled: fused is slower than unfused"));
}

TEST_CASE("what the page says of buffers is not of a case with few rounds",
          "[bench]") {
  const Arms few{
      {1, 1, 1, 0.3, 0.9, 1, 0.1, kProbes, kProbes, kProbes, kProbes}, 0.01};
  Arms enough = few;
  enough.seconds[6] = 0.2;
  std::vector<tool::KernelCase> cases = {CaseOf(few), CaseOf(enough)};
  for (tool::ArmTimes& arm : cases[0].times.arms) arm.processes[0].resize(3);
  Json report = tool::ToJson(cases, tool::MachineFacts());
  report["arithmetic"] = Json::array();
  CHECK(Contains(tool::html::KernelPage(report),
                 "Fused in place takes 0.20 of the time of unfused"));
}

TEST_CASE("too few rounds make no verdict anywhere", "[bench]") {
  std::vector<tool::KernelCase> cases = {CaseOf(
      {{1, 1, 1, 1, 0.5, 2, 0.5, kProbes, kProbes, kProbes, kProbes}, 0.01})};
  for (tool::ArmTimes& arm : cases[0].times.arms) arm.processes[0].resize(3);
  tool::MachineFacts machine;
  Json report = tool::ToJson(cases, machine);
  report["arithmetic"] = Json::array();
  for (const size_t arm : {4, 5, 6})
    CHECK(report["cases"][0]["arms"][arm]["comparison"]["verdict"] ==
          "too few rounds");
  CHECK(VerdictCells(tool::html::KernelPage(report)) ==
        std::vector<std::string>(3, "too few rounds"));
}

}  // namespace
}  // namespace addnorm::tests
