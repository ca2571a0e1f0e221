// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The tests' own tools have to be able to fail.
#include <stdexcept>

#include "tests/support/catch.h"
#include "tests/support/check_lines.h"
#include "tests/support/fixture.h"

namespace addnorm::tests {
namespace {

constexpr bool kNot = true;

TEST_CASE("check lines are substrings in order", "[support]") {
  CHECK(Mismatch({{"a"}, {"b"}}, "a b") == "");
  CHECK(Mismatch({{"b"}, {"a"}}, "a b") != "");
  CHECK(Mismatch({{"a"}, {"a"}}, "a b") != "");
  CHECK(Mismatch({{"c"}}, "a b") != "");
}

TEST_CASE("a forbidden line counts between its neighbours only", "[support]") {
  CHECK(Mismatch({{"x", kNot}, {"a"}, {"b"}}, "a x b") == "");
  CHECK(Mismatch({{"a"}, {"x", kNot}, {"b"}}, "a x b") != "");
  CHECK(Mismatch({{"a"}, {"x", kNot}}, "a b x") != "");
  CHECK(Mismatch({{"x", kNot}}, "a x") != "");
  CHECK(Mismatch({{"x", kNot}}, "a b") == "");
}

TEST_CASE("a fixture's expectations are read from its comments", "[support]") {
  const Fixture fixture = ParseFixture(
      "# Prose, and more: prose.\n# PASS: p\n# FUSED: 2\n# CHECK: a b \n# "
      "CHECK-NOT: c\n"
      "# REASON: r\nmodel # CHECK: not at the start of a line\n");
  CHECK(fixture.pass == "p");
  CHECK(fixture.fused == 2);
  REQUIRE(fixture.checks.size() == 2);
  CHECK(fixture.checks[0].text == "a b ");
  CHECK(fixture.checks[1].is_not);
  CHECK(fixture.reasons == std::vector<std::string>{"r"});
}

TEST_CASE("REJECT means that nothing is fused", "[support]") {
  const Fixture fixture = ParseFixture("# PASS: p\n# REJECT: r\n");
  CHECK(fixture.fused == 0);
  CHECK(fixture.reasons == std::vector<std::string>{"r"});
}

TEST_CASE("a fixture that expects nothing or something unknown is an error",
          "[support]") {
  CHECK_THROWS_AS(ParseFixture("# PASS: p\n"), std::runtime_error);
  CHECK_THROWS_AS(ParseFixture("# FUSED: 1\n"), std::runtime_error);
  CHECK_THROWS_AS(ParseFixture("# PASS: p\n# FUSED: 1\n# CHEK: x\n"),
                  std::runtime_error);
  CHECK_THROWS_AS(ParseFixture("# PASS: p\n# FUSED: 1\n# CHECK:\n"),
                  std::runtime_error);
}

}  // namespace
}  // namespace addnorm::tests
