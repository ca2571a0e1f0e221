// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a call may stand, what goes with the nodes that it replaces.
#include <string>
#include <vector>

#include "passes/ir/printer.h"
#include "passes/ir/verifier.h"
#include "passes/rewriter.h"
#include "tests/support/catch.h"
#include "tests/support/imported.h"

namespace addnorm::passes {
namespace {

ir::Node* Producer(ir::Model& model, const std::string& value) {
  return model.graph.FindValue(value)->producer();
}

// A call that replaces the producers of `from` … `to`, reading `operands`.
CallReplacement Call(ir::Model& model, const std::vector<std::string>& made,
                     const std::vector<std::string>& operands) {
  CallReplacement call;
  call.root = Producer(model, made.front());
  for (const std::string& value : made)
    call.nodes.push_back(Producer(model, value));
  for (const std::string& value : operands) {
    call.operands.push_back(model.graph.FindValue(value));
  }
  call.results = {model.graph.FindValue(made.back()),
                  model.graph.FindValue(made.front())};
  call.domain = "my";
  call.op_type = "Call";
  return call;
}

std::vector<std::string> Order(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& node : graph.nodes())
    names.push_back(node.outputs().back()->name());
  return names;
}

TEST_CASE(
    "a call goes after an operand that is made late, before the first reader",
    "[rewriter]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] a, float[2] b, float[2] k) => (float[2] z) {
      s = Add(a, b)
      w = Relu(k)
      y = Mul(s, w)
      z = Mul(y, s)
    })");
  Rewriter rewriter(*model);
  rewriter.Sort(model->graph);
  CallReplacement call = Call(*model, {"s", "y"}, {"a", "b", "w"});
  const auto place = rewriter.FindPlace(call);
  REQUIRE(place);
  CHECK(place->earlier.empty());
  rewriter.ReplaceByCall(std::move(call), *place);
  CHECK(Order(model->graph) == std::vector<std::string>{"w", "s", "z"});
  CHECK(IsSorted(model->graph));
  CHECK(ir::Verify(*model).ok());
}

TEST_CASE("what a late operand needs moves before a reader that stands earlier",
          "[rewriter]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] a, float[2] b, float[2] k) => (float[2] z) {
      s = Add(a, b)
      r = Neg(s)
      v = Relu(k)
      w = Relu(v)
      y = Mul(s, w)
      z = Mul(y, r)
    })");
  Rewriter rewriter(*model);
  rewriter.Sort(model->graph);
  CallReplacement call = Call(*model, {"s", "y"}, {"a", "b", "w"});
  const auto place = rewriter.FindPlace(call);
  REQUIRE(place);
  rewriter.ReplaceByCall(std::move(call), *place);
  CHECK(Order(model->graph) ==
        std::vector<std::string>{"v", "w", "s", "r", "z"});
  CHECK(IsSorted(model->graph));
}

TEST_CASE("a call whose operand depends on its result has no place",
          "[rewriter]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] a, float[2] b, bool c) => (float[2] y) {
      s = Add(a, b)
      w = If(c) <then_branch = t () => (float[2] u) { u = Neg(s) },
                 else_branch = e () => (float[2] v) { v = Neg(a) }>
      y = Mul(s, w)
    })");
  Rewriter rewriter(*model);
  rewriter.Sort(model->graph);
  CHECK_FALSE(rewriter.FindPlace(Call(*model, {"s", "y"}, {"a", "b", "w"})));
}

TEST_CASE("a reader in a subgraph counts as a reader where the subgraph stands",
          "[rewriter]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] a, float[2] b, float[2] k, bool c) => (float[2] y, float[2] r) {
      s = Add(a, b)
      r = If(c) <then_branch = t () => (float[2] u) { u = Neg(s) },
                 else_branch = e () => (float[2] v) { v = Neg(a) }>
      w = Relu(k)
      y = Mul(s, w)
    })");
  Rewriter rewriter(*model);
  rewriter.Sort(model->graph);
  CallReplacement call = Call(*model, {"s", "y"}, {"a", "b", "w"});
  const auto place = rewriter.FindPlace(call);
  REQUIRE(place);
  rewriter.ReplaceByCall(std::move(call), *place);
  CHECK(Order(model->graph) == std::vector<std::string>{"w", "s", "r"});
}

TEST_CASE("sorting moves only what stands wrong", "[rewriter]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] a) => (float[2] y) {
      p = Neg(a)
      y = Mul(q, p)
      q = Relu(a)
      r = Abs(a)
    })");
  Rewriter(*model).Sort(model->graph);
  CHECK(Order(model->graph) == std::vector<std::string>{"p", "q", "y", "r"});
}

TEST_CASE("sorting a sorted graph is no edit", "[rewriter]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] a) => (float[2] y) { p = Neg(a) y = Relu(p) })");
  Rewriter(*model).Sort(model->graph);
  CHECK_FALSE(model->graph.edited());
}

TEST_CASE(
    "constants go with their last reader, unless they are inputs or outputs",
    "[rewriter]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] a, float kept_input = {2.0}) => (float[2] y, float kept_output)
    <float gone = {3.0}, float shared = {4.0}, float kept_output = {5.0}>
    {
      cast = Cast<to = 1>(gone)
      s = Add(a, cast)
      t = Mul(s, shared)
      u = Mul(t, kept_input)
      v = Mul(u, kept_output)
      y = Mul(v, shared)
    })");
  Rewriter rewriter(*model);
  rewriter.Sort(model->graph);
  CallReplacement call = Call(*model, {"s", "t", "u", "v"}, {"a"});
  const auto place = rewriter.FindPlace(call);
  REQUIRE(place);
  rewriter.ReplaceByCall(std::move(call), *place);
  CHECK(model->graph.FindValue("gone") == nullptr);
  CHECK(model->graph.FindValue("cast") == nullptr);
  CHECK(model->graph.FindValue("shared") != nullptr);
  CHECK(model->graph.FindValue("kept_input") != nullptr);
  CHECK(model->graph.FindValue("kept_output") != nullptr);
  CHECK(ir::Verify(*model).ok());
}

TEST_CASE("a domain is imported once, and by the function whose body reads it",
          "[rewriter]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    g (float[2] a) => (float[2] y) { y = my.F(a) }
    <domain: "my", opset_import: ["" : 17]>
    F (x) => (z) { z = Neg(x) })");
  Rewriter rewriter(*model);
  ir::Function& function = model->functions.front();
  rewriter.ImportDomain(function.body, "new", 1);
  rewriter.ImportDomain(function.body, "new", 1);
  CHECK(model->OpsetVersion("new") == 1);
  CHECK(model->opset_imports.size() == 3);
  CHECK(function.opset_imports.size() == 2);
}

}  // namespace
}  // namespace addnorm::passes
