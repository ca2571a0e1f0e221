// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/kernel_check.h"

#include <set>
#include <string>

#include "proto/text.h"
#include "runtime/kernels/simd_target.h"
#include "tests/support/catch.h"
#include "tests/support/fixture.h"
#include "tests/support/imported.h"
#include "tests/support/optimised.h"

namespace addnorm::tool {
namespace {

using tests::Optimised;

Optimised FuseFixture(const std::string& name) {
  const tests::Fixture fixture = tests::ReadFixture(name);
  return tests::Optimise(proto::OpenText(name, fixture.text).value(),
                         fixture.pass);
}

// Fixtures that are run node by node, since a recipe cannot say what they do: a
// scale that the function computes, an epsilon that is cast from an integer.
const std::set<std::string> kNoRecipe = {
    "graphs/function_weight_plus_one.onnxtxt",
    "operands/epsilon_int64.onnxtxt",
};

TEST_CASE("the kernels of all fixtures give the bits of their bodies",
          "[kernel_check]") {
  int kinds = 0;
  std::set<std::string> without_kernel;
  for (const std::string& name : tests::FixtureNames()) {
    Optimised fused = FuseFixture(name);
    FusedCalls found = FusedCallsOf(*fused.model);
    if (found.calls == 0) continue;
    INFO(name);
    const auto check = CheckKernels(*fused.model, found.kinds, /*seed=*/1);
    INFO(check.status());
    REQUIRE(check.ok());
    for (const KernelResult& result : check->results) {
      INFO(result.op << " " << result.where);
      CHECK(result.comparison.is_equal());
      CHECK(result.words > 0);
      ++kinds;
      if (!result.has_kernel) without_kernel.insert(name);
    }
  }
  CHECK(kinds > 50);
  CHECK(without_kernel == kNoRecipe);
}

TEST_CASE("words are counted on each SIMD target", "[kernel_check]") {
  Optimised fused = FuseFixture("variants/norm/divide.onnxtxt");
  FusedCalls found = FusedCallsOf(*fused.model);
  REQUIRE(found.kinds.size() == 1);
  CHECK(found.kinds[0].length == 4);
  CHECK(found.kinds[0].rank == 3);
  CHECK(found.unknown == 0);
  const KernelCheck check = CheckKernels(*fused.model, found.kinds, 1).value();
  CHECK(check.targets.size() == runtime::SimdTargets().size());
  // Two outputs, two thread counts, in place and not.
  const auto ways = static_cast<int64_t>(8 * check.targets.size());
  CHECK(check.words % ways == 0);
  CHECK(check.words / ways > 70'000);
  CHECK(check.results[0].has_kernel);
  CHECK(check.results[0].type == "float x 4");
}

TEST_CASE("calls whose row length is not known are counted", "[kernel_check]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17, "ai.addnorm" : 1]>
    g (float[n,m] a, float[n,m] b) => (float[n,m] y)
    { y,  = ai.addnorm.F(a, b) }
    <domain: "ai.addnorm", opset_import: ["" : 17]>
    F (a, b) => (y, s) {
      s = Add(a, b) q = Mul(s, s) m = ReduceMean<axes = [-1]>(q)
      r = Sqrt(m) y = Div(s, r) })");
  const FusedCalls found = FusedCallsOf(*model);
  CHECK(found.calls == 1);
  CHECK(found.unknown == 1);
  CHECK(found.kinds.empty());
}

TEST_CASE("epsilon operands are told from scales", "[kernel_check]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17, "ai.addnorm" : 1]>
    g (float[n,4] a, float[n,4] b, float[4] w) => (float[n,4] y, float[n,4] z)
    <float e = {0.5}>
    { y,  = ai.addnorm.F(a, b, e) z,  = ai.addnorm.G(a, b, w) }
    <domain: "ai.addnorm", opset_import: ["" : 17]>
    F (a, b, e) => (y, s) {
      s = Add(a, b) q = Mul(s, s) m = ReduceMean<axes = [-1]>(q)
      p = Add(m, e) r = Sqrt(p) y = Div(s, r) }
    <domain: "ai.addnorm", opset_import: ["" : 17]>
    G (a, b, w) => (y, s) {
      s = Add(a, b) q = Mul(s, s) m = ReduceMean<axes = [-1]>(q)
      r = Sqrt(m) d = Div(s, r) y = Mul(d, w) })");
  const FusedCalls found = FusedCallsOf(*model);
  REQUIRE(found.kinds.size() == 2);
  REQUIRE_FALSE(found.kinds[0].epsilon.is_absent());
  CHECK(found.kinds[0].epsilon.data<float>()[0] == 0.5F);
  CHECK(found.kinds[1].epsilon.is_absent());
  const KernelCheck check = CheckKernels(*model, found.kinds, 1).value();
  CHECK(check.is_equal());
  for (const KernelResult& result : check.results) CHECK(result.has_kernel);
}

TEST_CASE("one result that differs is a check that failed", "[kernel_check]") {
  KernelCheck check;
  check.results.resize(2);
  CHECK(check.is_equal());
  check.results[1].comparison.different = 1;
  CHECK_FALSE(check.is_equal());
}

}  // namespace
}  // namespace addnorm::tool
