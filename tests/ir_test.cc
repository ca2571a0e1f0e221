// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The IR by itself: uses, order, erasing, printing.
#include <algorithm>
#include <memory>
#include <string>

#include "passes/ir/check.h"
#include "passes/ir/model.h"
#include "passes/ir/printer.h"
#include "passes/ir/verifier.h"
#include "tests/support/catch.h"
#include "tests/support/imported.h"

namespace addnorm::ir {
namespace {

Node* AddUnary(Graph& graph, Value* from, const std::string& to,
               Node* before = nullptr) {
  Node* node = graph.AddNode("", "Relu", before);
  graph.AddNodeInput(node, from);
  graph.AddNodeOutput(node, graph.AddValue(to));
  return node;
}

TEST_CASE("a value knows the nodes of inner graphs that read it", "[ir]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] a, bool c) => (float[2] y) {
      s = Relu(a)
      y = If(c) <then_branch = t () => (float[2] u) { u = Neg(s) },
                 else_branch = e () => (float[2] v) { v = Identity(s) }>
    })");
  const Value* s = model->graph.FindValue("s");
  REQUIRE(s->uses().size() == 2);
  for (const Use& use : s->uses()) {
    CHECK(use.node->graph() != &model->graph);
    CHECK(use.node->graph()->outer() == &model->graph);
  }
  CHECK(Verify(*model).ok());
}

TEST_CASE(
    "an output of an inner graph that names an outer value counts as a use of "
    "it",
    "[ir]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] a, bool c) => (float[2] y) {
      s = Relu(a)
      y = If(c) <then_branch = t () => (float[2] u) { u = Neg(a) },
                 else_branch = e () => (float[2] s) { }>
    })");
  CHECK(model->graph.FindValue("s")->is_graph_output());
}

TEST_CASE("an erased node gives back its uses and lets go of its outputs",
          "[ir]") {
  Model model;
  Value* a = model.graph.AddInput("a");
  Node* first = AddUnary(model.graph, a, "x");
  Node* second = AddUnary(model.graph, a, "y");
  second->source = 7;
  Value* y = second->output(0);
  model.graph.EraseNode(second);
  CHECK(a->uses() == std::vector<Use>{{first, 0}});
  CHECK(y->producer() == nullptr);
  CHECK(model.graph.erased_sources() == std::vector<Source>{7});
  CHECK(model.graph.edited());
  CHECK(Verify(model).ok());
}

TEST_CASE("a value in use cannot be erased", "[ir]") {
  Model model;
  Value* a = model.graph.AddInput("a");
  AddUnary(model.graph, a, "x");
  CHECK_THROWS_AS(model.graph.EraseValue(a), InternalError);
}

TEST_CASE("order numbers grow along the list however often one place is used",
          "[ir]") {
  Model model;
  Value* a = model.graph.AddInput("a");
  AddUnary(model.graph, a, "first");
  Node* last = AddUnary(model.graph, a, "last");
  for (int i = 0; i < 200; ++i)
    last = AddUnary(model.graph, a, "v" + std::to_string(i), last);
  const auto& nodes = model.graph.nodes();
  CHECK(std::is_sorted(
      nodes.begin(), nodes.end(),
      [](const Node& x, const Node& y) { return x.order <= y.order; }));
  CHECK(std::adjacent_find(nodes.begin(), nodes.end(),
                           [](const Node& x, const Node& y) {
                             return x.order >= y.order;
                           }) == nodes.end());
}

TEST_CASE("the printer writes what the text said", "[ir]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17, "my" : 2]>
    g (float[N,64] a) => (float[N,64] y) {
      m = ReduceMean<axes = [-1], keepdims = 1>(a)
      y, z = my.Split(m, , a)
    })");
  const std::string text = ToText(*model);
  CHECK_THAT(text, ContainsSubstring(R"(opset_import: ["" : 17, "my" : 2])"));
  CHECK_THAT(text, ContainsSubstring("g (float[N,64] a) => (float[N,64] y)"));
  CHECK_THAT(text,
             ContainsSubstring("m = ReduceMean<axes = [-1], keepdims = 1>(a)"));
  CHECK_THAT(text, ContainsSubstring("y, z = my.Split(m, , a)"));
}

TEST_CASE("the printer shows nodes' names and the values of small constants",
          "[ir]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N] a) => (float[N] y)
    <float two = {2.0}, float16[2] h = {15360, 49152}, int64[1] axis = {-1},
     bool t = {1}, float[9] long = {1, 2, 3, 4, 5, 6, 7, 8, 9}>
    {
      [square] sq = Pow(a, two)
      c = Constant<value = float {2.0}>()
      d = Constant<value = float[1] {0.5}>()
      e = Constant<value = float[9] {1, 2, 3, 4, 5, 6, 7, 8, 9}>()
      f = Constant<value_float = 0.5>()
      y = Mul(sq, c)
    })");
  const std::string text = ToText(*model);
  CHECK_THAT(text, ContainsSubstring(
                       "=> (float[N] y) <float two = {2.0}, float16[2] h = "
                       "{1.0, -2.0}, int64[1] axis = {-1}, bool t = {1}> {\n"));
  for (const char* line :
       {"[square] sq = Pow(a, two)", "c = Constant<value = float {2.0}>()",
        "d = Constant<value = float[1] {0.5}>()",
        "e = Constant<value = float[9]>()",
        "f = Constant<value_float = 0.5>()"}) {
    CHECK_THAT(text, ContainsSubstring(std::string("  ") + line + "\n"));
  }
}

TEST_CASE("the printer makes names safe to show", "[ir]") {
  Model model;
  model.graph.name = "g\x1b";
  Value* a = model.graph.AddInput("a\n");
  AddUnary(model.graph, a, "b\x1b[2J")->name = "n\r";
  CHECK(ToText(model.graph) ==
        "g\\x1b (a\\n) => () {\n  [n\\r] b\\x1b[2J = Relu(a\\n)\n}\n");
}

TEST_CASE("shapes differ provably by rank or by two numbers, never by symbols",
          "[ir]") {
  CHECK(ProvablyDiffer({{2}, {3}}, {{3}}));
  CHECK(ProvablyDiffer({{2}, {3}}, {{2}, {4}}));
  CHECK_FALSE(ProvablyDiffer({{2}, {"s"}}, {{2}, {"t"}}));
  CHECK_FALSE(ProvablyDiffer({{2}, {"s"}}, {{2}, {4}}));
  CHECK_FALSE(ProvablyDiffer({Dimension()}, {{4}}));
}

TEST_CASE("the number of elements is checked for overflow and sign", "[ir]") {
  Tensor tensor;
  CHECK(tensor.element_count() == 1);
  tensor.dims = {2, 0, int64_t{1} << 62};
  CHECK(tensor.element_count() == 0);
  tensor.dims = {int64_t{1} << 32, int64_t{1} << 32};
  CHECK(tensor.element_count() == std::nullopt);
  tensor.dims = {2, -1};
  CHECK(tensor.element_count() == std::nullopt);
}

}  // namespace
}  // namespace addnorm::ir
