// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of variants and its fixtures belong together: a row without a
// fixture is untested, and a fixture without a row tests something else than it
// says.
#include <algorithm>
#include <set>
#include <string>

#include "fmt/format.h"
#include "passes/rms_norm_variants.h"
#include "proto/text.h"
#include "tests/support/catch.h"
#include "tests/support/fixture.h"
#include "tests/support/optimised.h"

namespace addnorm::tests {
namespace {

using passes::RmsNormVariants;
using passes::VariantRow;

std::string FixtureOf(const VariantRow& row) {
  return fmt::format("variants/{}/{}.onnxtxt", row.rule, row.name);
}

TEST_CASE(
    "every row of the table has a fixture, every fixture of a variant a row",
    "[variants]") {
  std::set<std::string> expected;
  for (const VariantRow& row : RmsNormVariants())
    expected.insert(FixtureOf(row));
  std::set<std::string> found;
  for (const std::string& name : FixtureNames()) {
    if (name.rfind("variants/", 0) == 0) found.insert(name);
  }
  CHECK(found == expected);
}

TEST_CASE("rule and name together name one row", "[variants]") {
  std::set<std::string> seen;
  for (const VariantRow& row : RmsNormVariants()) {
    INFO(FixtureOf(row));
    CHECK(seen.insert(FixtureOf(row)).second);
  }
}

TEST_CASE("a row's fixture is matched by that row", "[variants]") {
  for (const VariantRow& row : RmsNormVariants()) {
    INFO(FixtureOf(row));
    const Fixture fixture = ReadFixture(FixtureOf(row));
    auto file = proto::OpenText("variant", fixture.text);
    REQUIRE(file.ok());
    const Optimised result = Optimise(*file, fixture.pass);
    const auto& candidates = result.report.candidates;
    const auto site = std::find_if(
        candidates.begin(), candidates.end(),
        [](const auto& c) { return c.verdict == passes::Verdict::kFused; });
    REQUIRE(site != candidates.end());
    INFO("matched as " << site->variant);
    CHECK(site->variant.find(row.tag) != std::string::npos);
  }
}

TEST_CASE("a row's text is ONNX text", "[variants]") {
  for (const VariantRow& row : RmsNormVariants()) {
    INFO(FixtureOf(row));
    const auto text = proto::SerializeText(fmt::format(
        R"(<ir_version: 8, opset_import: ["" : 17, "rule" : 1]> row (float x) => (y) {{ {} }})",
        row.text));
    INFO(text.status().ToString());
    CHECK(text.ok());
  }
}

}  // namespace
}  // namespace addnorm::tests
