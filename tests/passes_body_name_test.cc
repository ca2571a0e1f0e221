// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A fused op's name is a function of its body: same body, same name, in every
// model; different body, different name.
#include <set>
#include <string>

#include "fmt/format.h"
#include "passes/body_name.h"
#include "proto/text.h"
#include "tests/support/catch.h"
#include "tests/support/optimised.h"

namespace addnorm::tests {
namespace {

struct Norm {
  std::string prefix = "";  // of every value
  std::string add = "a, b";
  std::string exponent = "float two = {2.0}";
  std::string epsilon = "1e-6";
  std::string square = "Pow(s, two)";
  std::string keepdims = ", keepdims = 1";
  std::string product = "s, r";
  std::string weighted = "n, w";
};

std::string Model(Norm norm) {
  const auto text = fmt::format(
      R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[2,8] a, float[2,8] b) => (float[2,8] {0}y)
      <float[8] w = {{1,1,1,1,1,1,1,1}}, {1}, float eps = {{{2}}}> {{
        s = Add({3})
        sq = {4}
        ms = ReduceMean<axes = [-1]{5}>(sq)
        me = Add(ms, eps)
        rms = Sqrt(me)
        r = Reciprocal(rms)
        n = Mul({6})
        {0}y = Mul({7})
      }})",
      norm.prefix, norm.exponent, norm.epsilon, norm.add, norm.square,
      norm.keepdims, norm.product, norm.weighted);
  return text;
}

std::string NameOf(const Norm& norm) {
  auto file = proto::OpenText("model", Model(norm));
  INFO(Model(norm));
  REQUIRE(file.ok());
  const Optimised result = Optimise(*file, "fuse-add-rms-norm");
  REQUIRE(result.report.Count(passes::Verdict::kFused) == 1);
  return result.model->functions.front().name;
}

TEST_CASE(
    "names of values and the value of epsilon do not matter to a body's name",
    "[name]") {
  const std::string name = NameOf({});
  CHECK(NameOf({.prefix = "other_"}) == name);
  CHECK(NameOf({.epsilon = "1e-5"}) == name);
  // The operands are the op's inputs in the Add's own order.
  CHECK(NameOf({.add = "b, a"}) == name);
  CHECK_THAT(name, StartsWith("AddRmsNorm_reciprocal_f32_"));
}

TEST_CASE("whatever is different in the body is different in the name",
          "[name]") {
  const std::set<std::string> names = {
      NameOf({}),
      NameOf({.exponent = "float[1] two = {2.0}"}),
      NameOf({.exponent = "int64 two = {2}"}),
      NameOf({.square = "Mul(s, s)"}),
      NameOf({.keepdims = ""}),
      NameOf({.product = "r, s"}),
      NameOf({.weighted = "w, n"}),
  };
  CHECK(names.size() == 7);
}

// What a called function can be told apart by, and the prefix of its values,
// which is anybody's.
struct Callee {
  std::string prefix = "";  // of most values
  std::string product = "w, n";
  std::string factor = "3.0";
};

std::string NameOf(const Callee& callee) {
  const std::string text = fmt::format(
      R"(<ir_version: 8, opset_import: ["" : 17, "toy" : 1]>
      g (float[2,8] a, float[2,8] b, float[8] w) => (float[2,8] y) {{
        s = Add(a, b)
        y = toy.Norm(s, w)
      }}
      <domain: "toy", opset_import: ["" : 17]>
      Norm ({0}x, {0}gain) => ({0}y) {{
        {0}on = Constant<value = bool {{1}}>()
        w = If({0}on)<
          then_branch = yes () => (float[8] {0}more) {{
            {0}three = Constant<value = float {{{2}}}>()
            {0}more = Mul({0}gain, {0}three)
          }},
          else_branch = no () => (float[8] {0}less) {{
            {0}less = Neg({0}gain)
          }}>
        {0}sq = Mul({0}x, {0}x)
        {0}ms = ReduceMean<axes = [-1]>({0}sq)
        {0}rms = Sqrt({0}ms)
        n = Div({0}x, {0}rms)
        {0}y = Mul({1})
      }})",
      callee.prefix, callee.product, callee.factor);
  auto file = proto::OpenText("model", text);
  INFO(text);
  REQUIRE(file.ok());
  const Optimised result = Optimise(*file, "fuse-add-rms-norm");
  REQUIRE(result.report.Count(passes::Verdict::kFused) == 1);
  return result.model->functions.back().name;
}

TEST_CASE("a called function is a part of the name, the names in it are not",
          "[name]") {
  const std::string name = NameOf(Callee{});
  CHECK(NameOf(Callee{.prefix = "other_"}) == name);
  CHECK(NameOf(Callee{.product = "n, w"}) != name);
  // In a subgraph.
  CHECK(NameOf(Callee{.factor = "4.0"}) != name);
}

}  // namespace
}  // namespace addnorm::tests
