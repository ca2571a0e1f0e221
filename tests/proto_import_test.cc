// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"
#include "passes/ir/verifier.h"
#include "proto/import.h"
#include "proto/text.h"
#include "tests/support/catch.h"
#include "tests/support/proto_files.h"

namespace addnorm::proto {
namespace {

using tests::Message;

constexpr std::string_view kHead =
    R"(<ir_version: 8, opset_import: ["" : 17]>)";

absl::StatusOr<Imported> ImportBytes(const std::string& bytes) {
  auto file = ModelFile::FromBytes("model", bytes);
  if (!file.ok()) return file.status();
  return Import(*file);
}

onnx::ModelProto Parse(std::string_view text) {
  const auto bytes = SerializeText(std::string(kHead) + std::string(text));
  INFO(bytes.status());
  REQUIRE(bytes.ok());
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(*bytes));
  return model;
}

Imported ImportText(std::string_view text) {
  auto imported = ImportBytes(Parse(text).SerializeAsString());
  INFO(imported.status());
  REQUIRE(imported.ok());
  CHECK(ir::Verify(*imported->model).ok());
  return *std::move(imported);
}

std::string Refusal(const onnx::ModelProto& model) {
  const auto imported = ImportBytes(model.SerializeAsString());
  REQUIRE_FALSE(imported.ok());
  CHECK(imported.status().code() == absl::StatusCode::kInvalidArgument);
  return Message(imported.status());
}

TEST_CASE("an import has nodes, values, types and uses", "[proto]") {
  const Imported imported = ImportText(R"(
    g (float[N,4] x) => (float[N,4] y) <float[4] w = {1, 2, 3, 4}, float16[N,4] s> {
      [sum] s = Add(x, w)
      y = Clip(s, , w)
    })");
  const ir::Graph& graph = imported.model->graph;
  REQUIRE(graph.nodes().size() == 2);
  const ir::Node& add = graph.nodes().front();
  const ir::Node& clip = graph.nodes().back();
  CHECK(add.name == "sum");
  CHECK(add.Is("", "Add"));
  CHECK(add.source != ir::kNoSource);
  CHECK(add.order < clip.order);
  CHECK(clip.input(0) == add.output(0));
  CHECK(clip.input(1) == nullptr);
  const ir::Value& w = *graph.FindValue("w");
  CHECK(w.uses().size() == 2);
  CHECK(w.initializer() != nullptr);
  CHECK(ir::ToString(w.type) == "float[4]");
  CHECK(ir::ToString(graph.FindValue("s")->type) == "float16[N,4]");
  CHECK(graph.FindValue("x")->is_input());
  CHECK(graph.FindValue("y")->is_graph_output());
  CHECK(imported.model->OpsetVersion("") == 17);
  CHECK(imported.warnings.empty());
}

TEST_CASE("the default domain is the empty string, however it is spelt",
          "[proto]") {
  onnx::ModelProto model =
      Parse("g (float[1] x) => (float[1] y) { y = Relu(x) }");
  model.mutable_graph()->mutable_node(0)->set_domain("ai.onnx");
  model.mutable_opset_import(0)->set_domain("ai.onnx");
  const auto imported = ImportBytes(model.SerializeAsString());
  REQUIRE(imported.ok());
  CHECK(imported->model->graph.nodes().front().Is("", "Relu"));
  CHECK(imported->model->OpsetVersion("") == 17);
}

TEST_CASE("values of an outer graph are captured by inner ones", "[proto]") {
  const Imported imported = ImportText(R"(
    g (float[1] x, bool c) => (float[1] y) {
      s = Relu(x)
      y = If (c) <
        then_branch = a () => (float[1] t) { t = Neg(s) },
        else_branch = b () => (float[1] s) { }
      >
    })");
  ir::Graph& graph = imported.model->graph;
  const ir::Value& s = *graph.FindValue("s");
  REQUIRE(s.uses().size() == 1);
  const ir::Node& neg = *s.uses().front().node;
  CHECK(neg.Is("", "Neg"));
  CHECK(neg.graph()->owner() == &graph.nodes().back());
  CHECK(s.output_count() == 1);  // of the else branch
  CHECK(imported.model->AllGraphs().size() == 3);
}

TEST_CASE("attributes keep their values", "[proto]") {
  onnx::ModelProto proto = Parse(R"(
    g (float[1] x) => (float[1] y) {
      y = my.Op <i = 3, f = 1.5, s = "text", is = [1, 2], fs = [0.5], ss = ["a", "b"],
                 t = float {2.5}> (x)
    })");
  proto.mutable_opset_import()->Add()->set_domain("my");
  proto.mutable_graph()->mutable_node(0)->mutable_attribute(0)->clear_type();
  const auto imported = ImportBytes(proto.SerializeAsString());
  REQUIRE(imported.ok());
  const ir::Node& node = imported->model->graph.nodes().front();
  CHECK(*node.attribute("i")->get<int64_t>() == 3);
  CHECK(*node.attribute("f")->get<float>() == 1.5f);
  CHECK(*node.attribute("s")->get<std::string>() == "text");
  CHECK(*node.attribute("is")->get<std::vector<int64_t>>() ==
        std::vector<int64_t>{1, 2});
  CHECK(*node.attribute("fs")->get<std::vector<float>>() ==
        std::vector<float>{0.5f});
  CHECK(node.attribute("ss")->get<std::vector<std::string>>()->size() == 2);
  CHECK(node.attribute("t")->get<ir::Tensor>()->inline_bytes()->size() == 4);
  CHECK(node.attribute("none") == nullptr);
}

TEST_CASE("a long string attribute is not read", "[proto]") {
  onnx::ModelProto model =
      Parse("g (float[1] x) => (float[1] y) { y = Relu(x) }");
  onnx::AttributeProto& blob =
      *model.mutable_graph()->mutable_node(0)->add_attribute();
  blob.set_name("ep_cache_context");
  blob.set_type(onnx::AttributeProto::STRING);
  blob.set_s(std::string(100'000, 'x'));
  const auto imported = ImportBytes(model.SerializeAsString());
  REQUIRE(imported.ok());
  const ir::Attribute* read =
      imported->model->graph.nodes().front().attribute("ep_cache_context");
  REQUIRE(read != nullptr);
  CHECK(read->type == onnx::AttributeProto::STRING);
  CHECK(std::holds_alternative<ir::OpaqueAttribute>(read->value));
}

TEST_CASE("functions are imported with their attributes and opsets",
          "[proto]") {
  const Imported imported = ImportText(R"(
    g (float[1] x) => (float[1] y) { y = my.F <k = 2> (x) }
    <opset_import: ["ai.onnx" : 17], domain: "my">
    F <k> (a) => (b) { b = my.G <k : int = @k> (a) }
    <opset_import: ["" : 17], domain: "my">
    G <k> (a) => (b) { b = Relu(a) })");
  REQUIRE(imported.model->functions.size() == 2);
  const ir::Function& f = imported.model->functions.front();
  CHECK(f.attributes == std::vector<std::string>{"k"});
  CHECK(f.opset_imports.front().domain.empty());
  CHECK(f.body.inputs().size() == 1);
  CHECK(f.body.function() == &f);
  const ir::Attribute& k = f.body.nodes().front().attributes.front();
  CHECK(k.ref_attr_name == "k");
  CHECK(k.type == onnx::AttributeProto::INT);
}

TEST_CASE("quantization annotations and device configurations are marked",
          "[proto]") {
  onnx::ModelProto model = Parse(
      "g (float[1] x) => (float[1] y) { s = Relu(x) z = Neg(s) y = Abs(s) }");
  auto& annotation = *model.mutable_graph()->add_quantization_annotation();
  annotation.set_tensor_name("s");
  annotation.add_quant_parameter_tensor_names()->set_value("z");
  model.mutable_graph()
      ->mutable_node(2)
      ->add_device_configurations()
      ->set_configuration_id("c");
  const auto imported = ImportBytes(model.SerializeAsString());
  REQUIRE(imported.ok());
  const ir::Graph& graph = imported->model->graph;
  CHECK(graph.FindValue("s")->is_pinned());
  CHECK(graph.FindValue("z")->is_pinned());
  CHECK_FALSE(graph.FindValue("y")->is_pinned());
  CHECK_FALSE(graph.nodes().front().has_device_configurations);
  CHECK(graph.nodes().back().has_device_configurations);
}

TEST_CASE("what makes a graph ambiguous or incomplete is refused by name",
          "[proto]") {
  struct Case {
    const char* message;
    std::function<void(onnx::ModelProto&)> spoil;
  };
  const auto graph = [](onnx::ModelProto& m) { return m.mutable_graph(); };
  const std::vector<Case> cases = {
      {"model: has no graph", [](auto& m) { m.clear_graph(); }},
      {"node 'first': has no op_type",
       [&](auto& m) { graph(m)->mutable_node(0)->clear_op_type(); }},
      {"node Neg 'second': input 'nowhere' is made by no node, input or "
       "initializer",
       [&](auto& m) { graph(m)->mutable_node(1)->set_input(0, "nowhere"); }},
      {"value 's' is made twice, by Relu 'first' (node[0]) and by Neg 'second' "
       "(node[1])",
       [&](auto& m) { graph(m)->mutable_node(1)->set_output(0, "s"); }},
      {"value 's' is made twice, by Relu (node[0]) and by Neg (node[1])",
       [&](auto& m) {
         graph(m)->mutable_node(0)->clear_name();
         graph(m)->mutable_node(1)->clear_name();
         graph(m)->mutable_node(1)->set_output(0, "s");
       }},
      {"value 'x' is made twice, by an input and by Relu 'first' (node[0])",
       [&](auto& m) { graph(m)->mutable_node(0)->set_output(0, "x"); }},
      {"value 'x' is made twice, by an input and by an input",
       [&](auto& m) { *graph(m)->add_input() = graph(m)->input(0); }},
      {"value 'w' is made twice, by an initializer and by an initializer",
       [&](auto& m) {
         *graph(m)->add_initializer() = graph(m)->initializer(0);
       }},
      {"graph 'g': an input has no name",
       [&](auto& m) { graph(m)->add_input(); }},
      {"nodes form a cycle: Neg 'second' -> Abs 'third' -> Neg 'second'",
       [&](auto& m) { graph(m)->mutable_node(1)->set_input(0, "t"); }},
      {"nodes form a cycle: Relu 'first' -> Relu 'first'",
       [&](auto& m) { graph(m)->mutable_node(0)->set_input(0, "s"); }},
      {"node Relu 'first': attribute 'a' is given twice",
       [&](auto& m) {
         graph(m)->mutable_node(0)->add_attribute()->set_name("a");
         graph(m)->mutable_node(0)->add_attribute()->set_name("a");
       }},
      {"function 'my::F' is defined twice",
       [](auto& m) { *m.add_functions() = m.functions(0); }},
      {"function 'my::F' calls itself: my::F -> my::F",
       [](auto& m) {
         *m.mutable_functions(0)->mutable_node(0)->mutable_op_type() = "F";
         m.mutable_functions(0)->mutable_node(0)->set_domain("my");
       }},
      {"function 'F': output 'nowhere' of graph 'F'",
       [](auto& m) { m.mutable_functions(0)->set_output(0, "nowhere"); }},
  };
  for (const Case& c : cases) {
    INFO(c.message);
    onnx::ModelProto model = Parse(R"(
      g (float[1] x) => (float[1] y) <float[1] w = {1}> {
        [first] s = Relu(x)
        [second] y = Neg(s)
        [third] t = Abs(y)
      }
      <opset_import: ["" : 17], domain: "my">
      F (a) => (b) { b = Relu(a) })");
    c.spoil(model);
    CHECK_THAT(Refusal(model), ContainsSubstring(c.message));
  }
}

TEST_CASE("a cycle through an inner graph is a cycle", "[proto]") {
  CHECK_THAT(Refusal(Parse(R"(
    g (float[1] x, bool c) => (float[1] y) {
      y = If (c) < then_branch = a () => (float[1] t) { t = Neg(z) },
                   else_branch = b () => (float[1] x) { } >
      z = Relu(y)
    })")),
             ContainsSubstring("nodes form a cycle: "));
  CHECK_THAT(Refusal(Parse(R"(
    g (float[1] x, bool c) => (float[1] y) {
      y = If (c) < then_branch = a () => (float[1] z) { },
                   else_branch = b () => (float[1] x) { } >
      z = Relu(y)
    })")),
             ContainsSubstring("nodes form a cycle: "));
}

TEST_CASE("functions that call each other in a circle are refused", "[proto]") {
  CHECK_THAT(Refusal(Parse(R"(
    g (float[1] x) => (float[1] y) { y = Relu(x) }
    <opset_import: ["" : 17, "my" : 1], domain: "my"> E (a) => (b) { b = my.F(a) }
    <opset_import: ["" : 17, "my" : 1], domain: "my"> F (a) => (b) { b = my.G(a) }
    <opset_import: ["" : 17, "my" : 1], domain: "my"> G (a) => (b) { b = my.F(a) })")),
             ContainsSubstring(
                 "function 'my::F' calls itself: my::F -> my::G -> my::F"));
}

TEST_CASE("a name hides an outer one unless either could be meant", "[proto]") {
  const std::string_view text = R"(
    g (float[1] x, bool c) => (float[1] y) {
      s = Relu(x)
      y = If (c) < then_branch = a () => (float[1] t) { s = Neg(x) t = Abs(s) },
                   else_branch = b () => (float[1] x) { } >
    })";
  const Imported imported = ImportText(text);
  CHECK(imported.model->graph.FindValue("s")->uses().empty());
  onnx::ModelProto model = Parse(text);
  model.mutable_graph()
      ->mutable_node(1)
      ->mutable_attribute(0)
      ->mutable_g()
      ->mutable_node()
      ->SwapElements(0, 1);
  CHECK_THAT(Refusal(model),
             ContainsSubstring("input 's' is read before its graph makes it"));
}

TEST_CASE("what is merely odd is imported", "[proto]") {
  onnx::ModelProto model = Parse(R"(
    g (float[1] x) => (float[1] y, float[1] lost) {
      [same] y = Neg(s)
      [same] s = Relu(x)
    })");
  model.mutable_graph()->add_node()->set_op_type("Sink");
  model.mutable_graph()->add_initializer()->add_dims(0);
  auto& import = *model.add_opset_import();
  import.set_version(18);
  const auto imported = ImportBytes(model.SerializeAsString());
  INFO(imported.status());
  REQUIRE(imported.ok());
  CHECK(imported->model->graph.nodes().size() == 3);
  CHECK(imported->model->OpsetVersion("") == 18);
  REQUIRE(imported->warnings.size() == 2);
  CHECK_THAT(imported->warnings[0], ContainsSubstring("version 17 and as 18"));
  CHECK(imported->warnings[1] == "graph output 'lost' is made by nothing");
}

TEST_CASE("a graph in two parts is one graph", "[proto]") {
  const onnx::ModelProto model = Parse(
      "g (float[1] x) => (float[1] y) <float[1] w = {1}> { s = Add(x, w) y = "
      "Neg(s) }");
  onnx::GraphProto first = model.graph();
  first.mutable_node()->RemoveLast();
  first.clear_initializer();
  onnx::GraphProto second;
  *second.add_node() = model.graph().node(1);
  *second.add_initializer() = model.graph().initializer(0);
  onnx::ModelProto rest = model;
  rest.clear_graph();
  const auto imported = ImportBytes(
      tests::Field(7, first.SerializeAsString()) + rest.SerializeAsString() +
      tests::Field(7, second.SerializeAsString()));
  INFO(imported.status());
  REQUIRE(imported.ok());
  CHECK(imported->model->graph.nodes().size() == 2);
  CHECK(imported->model->graph.FindValue("w")->initializer() != nullptr);
}

TEST_CASE("names that are no UTF-8 are kept, and printed with escapes",
          "[proto]") {
  onnx::ModelProto model =
      Parse("g (float[1] x) => (float[1] y) { y = Relu(x) }");
  model.mutable_graph()->mutable_node(0)->set_name("a\xff\n");
  const auto imported = ImportBytes(model.SerializeAsString());
  REQUIRE(imported.ok());
  CHECK(imported->model->graph.nodes().front().name == "a\xff\n");
  model.mutable_graph()->mutable_node(0)->set_input(0, "q");
  CHECK_THAT(Refusal(model), ContainsSubstring(R"(Relu 'a\xff\n': input 'q')"));
}

TEST_CASE("a chain of 200 000 nodes is imported in either order", "[proto]") {
  const bool reversed = GENERATE(false, true);
  constexpr int kNodes = 200'000;
  onnx::ModelProto model = Parse("g (float[1] v0) => (float[1] v200000) { }");
  for (int i = 0; i < kNodes; ++i) {
    const int k = reversed ? kNodes - 1 - i : i;
    onnx::NodeProto& node = *model.mutable_graph()->add_node();
    node.set_op_type("Relu");
    node.add_input("v" + std::to_string(k));
    node.add_output("v" + std::to_string(k + 1));
  }
  const auto imported = ImportBytes(model.SerializeAsString());
  REQUIRE(imported.ok());
  CHECK(imported->model->graph.nodes().size() == kNodes);
}

TEST_CASE("what training_info reads or binds must stay", "[proto]") {
  onnx::ModelProto model = Parse(
      "g (float[1] x) => (float[1] y) <float[1] e = {1}, float[1] b = {2}, "
      "float[1] f = {3}> { z = Add(x, e) u = Add(z, b) y = Add(u, f) }");
  onnx::TrainingInfoProto& training = *model.add_training_info();
  onnx::NodeProto& node = *training.mutable_algorithm()->add_node();
  node.set_op_type("Neg");
  node.add_input("e");
  node.add_output("ne");
  onnx::StringStringEntryProto& binding = *training.add_update_binding();
  binding.set_key("b");
  binding.set_value("ne");
  const auto imported = ImportBytes(model.SerializeAsString());
  REQUIRE(imported.ok());
  const ir::Graph& graph = imported->model->graph;
  CHECK(graph.FindValue("e")->is_pinned());
  CHECK(graph.FindValue("b")->is_pinned());
  CHECK_FALSE(graph.FindValue("f")->is_pinned());
}

}  // namespace
}  // namespace addnorm::proto
