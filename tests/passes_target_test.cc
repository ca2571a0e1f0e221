// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Targets whose operators round in their own way: what is written, and that
// nothing is written without a proof.
#include <algorithm>
#include <string>

#include "fmt/format.h"
#include "passes/ir/printer.h"
#include "passes/pass.h"
#include "proto/text.h"
#include "tests/support/catch.h"
#include "tests/support/optimised.h"

namespace addnorm::tests {
namespace {

using passes::PassContext;
using passes::Target;
using passes::Verdict;

struct Block {
  int opset = 18;
  std::string element = "float";
  std::string residual = "[B,S,4]";
  std::string branch = "[B,S,4]";
  std::string sum = "";  // that of the residual
  std::string weight = "float[4] w = {1,2,3,4}";
  std::string epsilon = "1e-6";
  std::string outputs = "y, s";
};

std::string Text(const Block& block) {
  std::string outputs;
  for (const char* name : {"y", "s"}) {
    if (block.outputs.find(name) == std::string::npos) continue;
    const bool is_stale = !block.sum.empty() && name == std::string("s");
    outputs +=
        fmt::format("{}{}{} {}", outputs.empty() ? "" : ", ", block.element,
                    is_stale ? block.sum : block.residual, name);
  }
  return fmt::format(
      R"(<ir_version: 8, opset_import: ["" : {0}]>
      g ({1}{2} a, {1}{3} b) => ({6})
      <{4}, {1} two = {{2.0}}, {1} eps = {{{5}}}, int64[1] axes = {{-1}}> {{
        s = Add(a, b)
        sq = Pow(s, two)
        ms = ReduceMean<keepdims = 1>(sq, axes)
        me = Add(ms, eps)
        rms = Sqrt(me)
        r = Reciprocal(rms)
        n = Mul(s, r)
        y = Mul(n, w)
      }})",
      block.opset, block.element, block.residual, block.branch, block.weight,
      block.epsilon, outputs);
}

Optimised For(Target target, const Block& block, bool mixed = false) {
  auto file = proto::OpenText("block", Text(block));
  INFO(Text(block));
  INFO(file.status().ToString());
  REQUIRE(file.ok());
  PassContext context;
  context.target = target;
  context.mixed = mixed;
  return Optimise(*file, "fuse-add-rms-norm", std::move(context));
}

// The reason of the one candidate, which must not have been fused.
std::string Refusal(Target target, const Block& block) {
  const Optimised result = For(target, block);
  CHECK_FALSE(result.model->graph.edited());
  REQUIRE(result.report.candidates.size() == 1);
  CHECK(result.report.candidates[0].verdict == Verdict::kNotFused);
  return result.report.candidates[0].reason;
}

TEST_CASE("target ort writes the Skip operator with the sum as output 3",
          "[target]") {
  const Optimised result = For(Target::kOrt, {});
  const std::string text = ir::ToText(*result.model);
  CHECK_THAT(text, ContainsSubstring(
                       "y, , , s = "
                       "com.microsoft.SkipSimplifiedLayerNormalization"));
  CHECK_THAT(text, ContainsSubstring("(a, b, w)"));
  CHECK_THAT(text, ContainsSubstring("epsilon = 1e-06"));
  CHECK(result.model->OpsetVersion("com.microsoft") == 1);
  CHECK(result.model->functions.empty());
  REQUIRE(result.report.notes.size() == 1);
  CHECK_THAT(result.report.notes[0], ContainsSubstring("rounds differently"));
}

TEST_CASE("target ort refuses what it cannot prove", "[target]") {
  struct Row {
    Block block;
    std::string reason;
  };
  Block unknown;
  unknown.branch = "[B,T,4]";
  Block rank4;
  rank4.residual = rank4.branch = "[1,B,S,4]";
  Block row_unknown;
  row_unknown.residual = row_unknown.branch = "[B,S,D]";
  Block f64;
  f64.element = "double";
  f64.weight = "double[4] w = {1,2,3,4}";
  Block scalar;
  scalar.weight = "float w = {2}";
  Block stale_rank = rank4;
  stale_rank.sum = "[1,B,4]";
  Block stale_row;
  stale_row.residual = stale_row.branch = "[B,S,2]";
  stale_row.sum = "[B,S,4]";
  for (const Row& row :
       {Row{unknown, "are not known to have one shape"},
        Row{rank4, "has rank 4"}, Row{stale_rank, "has rank 4"},
        Row{stale_row, "not known to be one row of 'a'"},
        Row{row_unknown, "not known to be one row"},
        Row{f64, "no such operator for double"},
        Row{scalar, "not known to be one row"}}) {
    CHECK_THAT(Refusal(Target::kOrt, row.block), ContainsSubstring(row.reason));
  }
}

TEST_CASE("with mixed, a site without a proof becomes a portable one",
          "[target]") {
  Block block;
  block.branch = "[B,T,4]";
  const Optimised result = For(Target::kOrt, block, /*mixed=*/true);
  REQUIRE(result.report.candidates.size() == 1);
  CHECK(result.report.candidates[0].verdict == Verdict::kFused);
  CHECK_THAT(result.report.candidates[0].op, StartsWith("AddRmsNorm"));
  CHECK_THAT(result.report.candidates[0].hint,
             ContainsSubstring("are not known to have one shape"));
}

TEST_CASE("with mixed, what the target writes is left as it is", "[target]") {
  Block block;
  block.opset = 23;
  const std::string once = For(Target::kOnnx, block, /*mixed=*/true).Bytes();
  auto file = proto::ModelFile::FromBytes("once", once);
  REQUIRE(file.ok());
  PassContext context;
  context.target = Target::kOnnx;
  context.mixed = true;
  CHECK(Optimise(*file, "fuse-add-rms-norm", std::move(context)).Bytes() ==
        once);
}

TEST_CASE("target onnx keeps the Add and writes RMSNormalization", "[target]") {
  Block block;
  block.opset = 23;
  const Optimised result = For(Target::kOnnx, block);
  const std::string text = ir::ToText(*result.model);
  CHECK_THAT(text, ContainsSubstring("s = Add(a, b)"));
  CHECK_THAT(text, ContainsSubstring("y = RMSNormalization"));
  CHECK_THAT(text, ContainsSubstring("(s, w)"));
  CHECK_THAT(text, ContainsSubstring("axis = -1"));
  CHECK_THAT(text, ContainsSubstring("epsilon = 1e-06"));
  CHECK(result.model->ir_version == 8);
  CHECK(result.model->opset_imports.size() == 1);
}

TEST_CASE("target onnx needs opset 23", "[target]") {
  CHECK_THAT(Refusal(Target::kOnnx, {}), ContainsSubstring("needs opset 23"));
}

// Its weight may be another one inside, and its epsilon is its own.
TEST_CASE("targets with an operator of their own refuse a called norm",
          "[target]") {
  auto file =
      proto::OpenText("model",
                      R"(<ir_version: 10, opset_import: ["" : 23, "toy" : 1]>
      g (float[2,3,4] a, float[2,3,4] b, float[4] w) => (float[2,3,4] y) {
        s = Add(a, b)
        y = toy.Norm(s, w)
      }
      <domain: "toy", opset_import: ["" : 23]>
      Norm (x, gain) => (y) {
        one = Constant<value = float {1}>()
        more = Add(gain, one)
        y = RMSNormalization<axis = -1, epsilon = 0.25>(x, more)
      })");
  REQUIRE(file.ok());
  for (const Target target : {Target::kOrt, Target::kOnnx}) {
    passes::PassContext context;
    context.target = target;
    const Optimised result =
        Optimise(*file, "fuse-add-rms-norm", std::move(context));
    REQUIRE(result.report.candidates.size() == 1);
    CHECK_THAT(result.report.candidates[0].reason,
               ContainsSubstring("what a called function makes of"));
  }
}

TEST_CASE("every target keeps a sum that is an output or is read", "[target]") {
  for (const Target target : {Target::kPortable, Target::kOrt}) {
    const Optimised both = For(target, {});
    CHECK(both.model->graph.FindValue("s")->producer() != nullptr);
    Block alone;
    alone.outputs = "y";
    const Optimised one = For(target, alone);
    CHECK(one.model->graph.FindValue("s") == nullptr);
    CHECK(one.model->graph.FindValue("y")->producer() != nullptr);
  }
}

}  // namespace
}  // namespace addnorm::tests
