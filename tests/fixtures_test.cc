// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Every file below tests/fixtures, through the pass that it names.
#include <algorithm>
#include <string>

#include "fmt/format.h"
#include "passes/ir/printer.h"
#include "proto/export.h"
#include "proto/import.h"
#include "proto/text.h"
#include "tests/support/catch.h"
#include "tests/support/fixture.h"
#include "tests/support/optimised.h"

namespace addnorm::tests {
namespace {

using passes::FusionReport;
using passes::Verdict;

std::shared_ptr<proto::ModelFile> Open(const std::string& name,
                                       const Fixture& fixture) {
  auto file = proto::OpenText(name, fixture.text);
  INFO(file.status().ToString());
  REQUIRE(file.ok());
  return *file;
}

// Counted in the model, not in the report: the report may be wrong.
int CountFusedNodes(ir::Model& model) {
  int count = 0;
  for (const ir::Graph* graph : model.AllGraphs()) {
    count += static_cast<int>(std::count_if(
        graph->nodes().begin(), graph->nodes().end(),
        [](const ir::Node& node) { return node.domain() == "ai.addnorm"; }));
  }
  return count;
}

bool HasReason(const FusionReport& report, const std::string& text) {
  return std::any_of(report.candidates.begin(), report.candidates.end(),
                     [&](const auto& c) {
                       return c.verdict != Verdict::kFused &&
                              c.reason.find(text) != std::string::npos;
                     });
}

std::string ListReasons(const FusionReport& report) {
  std::string text;
  for (const passes::Candidate& c : report.candidates) {
    text +=
        fmt::format("\n{}: {}: {}", VerdictName(c.verdict), c.node, c.reason);
  }
  return text;
}

// Which expectation does not hold; empty if all do.
std::string Problem(const Fixture& fixture, const Optimised& result) {
  const FusionReport& report = result.report;
  const int fused = CountFusedNodes(*result.model);
  if (fused != fixture.fused.value_or(fused)) {
    return fmt::format("{} fused, expected {}{}", fused, *fixture.fused,
                       ListReasons(report));
  }
  if (fused != report.Count(Verdict::kFused)) {
    return fmt::format("{} fused, reported{}", fused, ListReasons(report));
  }
  for (const std::string& reason : fixture.reasons) {
    if (!HasReason(report, reason)) {
      return fmt::format("no reason has '{}'{}", reason, ListReasons(report));
    }
  }
  if (fixture.layer_norms && (!report.candidates.empty() ||
                              report.layer_norms != *fixture.layer_norms)) {
    return fmt::format("{} LayerNorms, expected {} and nothing else{}",
                       report.layer_norms, *fixture.layer_norms,
                       ListReasons(report));
  }
  return Mismatch(fixture.checks, ir::ToText(*result.model));
}

TEST_CASE("a fixture's model becomes what its expectations say", "[fixtures]") {
  const std::string name = GENERATE(from_range(FixtureNames()));
  INFO("tests/fixtures/" << name);
  const Fixture fixture = ReadFixture(name);
  CHECK(Problem(fixture, Optimise(Open(name, fixture), fixture.pass)) == "");
}

// Known gaps, with what is right: whoever closes one moves the file.
TEST_CASE("a fixture in not_yet does not hold yet", "[fixtures]") {
  for (const std::string& name : NotYetFixtureNames()) {
    INFO("tests/fixtures/" << name << " holds: move it to where it belongs");
    const Fixture fixture = ReadFixture(name);
    CHECK(Problem(fixture, Optimise(Open(name, fixture), fixture.pass)) != "");
  }
  SUCCEED("there may be none");
}

TEST_CASE("a refused site says what to do, unless there is nothing to do",
          "[fixtures]") {
  struct Row {
    const char* fixture;
    const char* hint;
  };
  for (const Row& row :
       {Row{"near_misses/epsilon_overridable.onnxtxt", "graph's inputs"},
        Row{"near_misses/axis_positive_rank_unknown.onnxtxt",
            "onnx.shape_inference"},
        Row{"near_misses/clip_between.onnxtxt", "nothing but Casts"},
        Row{"near_misses/exponent_3.onnxtxt", "patterns --text"}}) {
    INFO(row.fixture);
    const Fixture fixture = ReadFixture(row.fixture);
    const Optimised result = Optimise(Open(row.fixture, fixture), fixture.pass);
    REQUIRE_FALSE(result.report.candidates.empty());
    CHECK_THAT(result.report.candidates.front().hint,
               ContainsSubstring(row.hint));
  }
}

TEST_CASE("an optimised model is read back as it was written", "[fixtures]") {
  const std::string name = GENERATE(from_range(FixtureNames()));
  INFO("tests/fixtures/" << name);
  const Fixture fixture = ReadFixture(name);
  const Optimised result = Optimise(Open(name, fixture), fixture.pass);

  auto written = proto::ModelFile::FromBytes(name, result.Bytes());
  REQUIRE(written.ok());
  auto again = proto::Import(*written);
  INFO(again.status().ToString());
  REQUIRE(again.ok());
  CHECK(ir::ToText(*again->model) == ir::ToText(*result.model));
}

TEST_CASE("optimising an optimised model finds no site and changes no byte",
          "[fixtures]") {
  const std::string name = GENERATE(from_range(FixtureNames()));
  INFO("tests/fixtures/" << name);
  const Fixture fixture = ReadFixture(name);
  const std::string once = Optimise(Open(name, fixture), fixture.pass).Bytes();

  auto written = proto::ModelFile::FromBytes(name, once);
  REQUIRE(written.ok());
  const Optimised twice = Optimise(*written, fixture.pass);
  CHECK(twice.report.Count(Verdict::kFused) == 0);
  CHECK(twice.Bytes() == once);
}

TEST_CASE("a model without a site is written byte for byte", "[fixtures]") {
  int count = 0;
  for (const std::string& name : FixtureNames()) {
    const Fixture fixture = ReadFixture(name);
    const Optimised result = Optimise(Open(name, fixture), fixture.pass);
    if (CountFusedNodes(*result.model) > 0) continue;
    INFO("tests/fixtures/" << name);
    std::string input(result.file->size(), '\0');
    REQUIRE(result.file->Read(0, input.size(), input.data()).ok());
    CHECK(result.Bytes() == input);
    ++count;
  }
  CHECK(count > 0);
}

TEST_CASE("there are at least as many near misses as sites among the fixtures",
          "[fixtures]") {
  int positive = 0;
  int negative = 0;
  for (const std::string& name : FixtureNames()) {
    const int fused = ReadFixture(name).fused.value_or(0);
    ++(fused > 0 ? positive : negative);
  }
  CAPTURE(positive, negative);
  CHECK(positive > 0);
  CHECK(negative >= positive);
}

}  // namespace
}  // namespace addnorm::tests
