// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A fixture: a model as ONNX text and what a pass must make of it, in one file.
//
// The expectations are lines that ONNX text takes for comments:
//   # PASS: name             the pass to run
//   # FUSED: n               so many sites are fused
//   # CHECK: text            ordered substrings of the printed IR after the
//   # CHECK-NOT: text        pass, see check_lines.h
//   # REJECT: text           nothing is fused, and a reason contains this
//   # REASON: text           a reason in the report contains this
//   # QUIET: n               nothing is reported but n LayerNorms
// Any other word in capitals before a colon is an error, so that a misspelt
// expectation does not pass for a comment. It does not compare numbers: that is
// what tests/python/oracle_test.py does with the same files.
//
//   Fixture fixture = ReadFixture("near_misses/bias.onnxtxt");
#ifndef ADDNORM_TESTS_SUPPORT_FIXTURE_H_
#define ADDNORM_TESTS_SUPPORT_FIXTURE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/check_lines.h"

namespace addnorm::tests {

struct Fixture {
  std::string text;  // the whole file
  std::string pass;
  std::optional<int> fused;
  std::vector<CheckLine> checks;
  std::vector<std::string> reasons;
  std::optional<int> layer_norms;  // of a report that has nothing else
};

// Throws std::runtime_error if the expectations are malformed or there are
// none.
Fixture ParseFixture(std::string_view text);
Fixture ReadFixture(const std::string& name);

// All files below tests/fixtures, relative to it, sorted; those in not_yet
// apart.
std::vector<std::string> FixtureNames();
std::vector<std::string> NotYetFixtureNames();

}  // namespace addnorm::tests

#endif  // ADDNORM_TESTS_SUPPORT_FIXTURE_H_
