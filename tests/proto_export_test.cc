// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"
#include "proto/export.h"
#include "proto/import.h"
#include "proto/text.h"
#include "tests/support/catch.h"
#include "tests/support/proto_files.h"

namespace addnorm::proto {
namespace {

using tests::Field;

struct Opened {
  std::shared_ptr<ModelFile> file;
  std::unique_ptr<ir::Model> model;

  ir::Node* node(std::string_view name) const {
    for (ir::Graph* graph : model->AllGraphs()) {
      for (ir::Node& node : graph->nodes()) {
        if (node.name == name) return &node;
      }
    }
    return nullptr;
  }

  std::string Exported() const {
    const auto rope = Export(*file, *model);
    INFO(rope.status());
    REQUIRE(rope.ok());
    return *rope->Flatten(*file);
  }

  onnx::ModelProto Parsed() const {
    onnx::ModelProto proto;
    REQUIRE(proto.ParseFromString(Exported()));
    return proto;
  }
};

Opened Open(const std::string& bytes) {
  auto file = ModelFile::FromBytes("model", bytes);
  REQUIRE(file.ok());
  auto imported = Import(*file);
  INFO(imported.status());
  REQUIRE(imported.ok());
  return {*file, std::move(imported->model)};
}

onnx::ModelProto Parse(std::string_view text) {
  const auto bytes = SerializeText(text);
  INFO(bytes.status());
  REQUIRE(bytes.ok());
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(*bytes));
  return model;
}

constexpr std::string_view kModel = R"(
  <ir_version: 7, opset_import: ["" : 17]>
  g (float[1] x, bool c) => (float[1] y) <float[1] w = {1}, float[1] s, float[1] t> {
    [first] s = Add(x, w)
    [second] t = Neg(s)
    [third] u = Abs(t)
    [branch] y = If (c) <
      then_branch = a () => (float[1] p) { [inner] q = Relu(u) [last] p = Exp(q) },
      else_branch = b () => (float[1] s) { }
    >
  }
  <opset_import: ["" : 17], domain: "my">
  F (a) => (b) { [one] i = Relu(a) [two] b = Neg(i) })";

std::vector<std::string> Names(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  std::vector<std::string> names;
  for (const auto& node : nodes) names.push_back(node.name());
  return names;
}

// Puts a node of another type in a node's place, as a rewrite does.
ir::Node* Replace(const Opened& opened, std::string_view name,
                  std::string new_type) {
  ir::Node* old = opened.node(name);
  ir::Graph* graph = old->graph();
  const std::vector<ir::Value*> inputs = old->inputs();
  ir::Value* output = old->output(0);
  const ir::Source source = old->source;
  ir::Node* made = graph->AddNode("ai.addnorm", std::move(new_type), old);
  graph->EraseNode(old);
  for (ir::Value* input : inputs) graph->AddNodeInput(made, input);
  graph->AddNodeOutput(made, output);
  graph->AddNodeOutput(made, nullptr);
  made->name = name;
  made->inherits_from = source;
  return made;
}

TEST_CASE("a model that no pass edited is exported byte for byte", "[proto]") {
  // With what libprotobuf would not write: a padded varint, a group, unknown
  // fields, a field twice, fields out of order.
  const std::string odd(
      "\x08\x83\x80\x00\x93\x0b\x08\x01\x94\x0b\xfa\x07\x02hi", 15);
  const std::string bytes =
      Field(14, "") + odd + Parse(kModel).SerializeAsString() + odd;
  const Opened opened = Open(bytes);
  CHECK(opened.model->ir_version == 3);  // the last occurrence counts
  CHECK(opened.Exported() == bytes);
}

TEST_CASE(
    "every model of the neighbouring collections is exported byte for byte",
    "[proto]") {
  namespace fs = std::filesystem;
  int models = 0;
  for (const char* folder : {"node", "corpus"}) {
    const fs::path root =
        fs::path(ADDNORM_SOURCE_DIR) / ".." / "shared" / folder;
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::directory_iterator(root)) {
      const std::string path = (entry.path() / "model.onnx").string();
      if (!fs::exists(path)) continue;
      INFO(path);
      auto file = ModelFile::Open(path);
      REQUIRE(file.ok());
      auto imported = Import(*file);
      INFO(imported.status());
      REQUIRE(imported.ok());
      const auto rope = Export(**file, *imported->model);
      REQUIRE(rope.ok());
      std::ifstream in(path, std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      CHECK(*rope->Flatten(**file) == bytes);
      ++models;
    }
  }
  if (models == 0) WARN("skipped: ../shared is not there");
  SUCCEED();
}

TEST_CASE("a replaced node is the only thing that changes", "[proto]") {
  onnx::ModelProto proto = Parse(kModel);
  proto.mutable_graph()->mutable_node(1)->set_doc_string("what it does");
  const Opened opened = Open(proto.SerializeAsString());
  ir::Node* made = Replace(opened, "second", "Fused");
  made->attributes.push_back(
      {.name = "epsilon", .type = 1, .value = 0.5f, .ref_attr_name = {}});
  onnx::NodeProto& node = *proto.mutable_graph()->mutable_node(1);
  node.set_op_type("Fused");
  node.set_domain("ai.addnorm");
  node.add_output("");
  onnx::AttributeProto& epsilon = *node.add_attribute();
  epsilon.set_name("epsilon");
  epsilon.set_type(onnx::AttributeProto::FLOAT);
  epsilon.set_f(0.5f);
  CHECK(opened.Parsed().SerializeAsString() == proto.SerializeAsString());
}

TEST_CASE("a new node inherits doc string, metadata and unknown fields",
          "[proto]") {
  onnx::ModelProto proto = Parse(
      "<ir_version: 10, opset_import: [\"\" : 17]> g (float[1] x) => (float[1] "
      "y) { y = Neg(x) }");
  onnx::NodeProto& node = *proto.mutable_graph()->mutable_node(0);
  node.set_name("n");
  node.set_doc_string("doc");
  node.add_metadata_props()->set_key("key");
  node.add_attribute()->set_name("gone");
  const std::string unknown = Field(77, "unknown");
  onnx::ModelProto rest = proto;
  rest.mutable_graph()->clear_node();
  const Opened opened =
      Open(rest.SerializeAsString() +
           Field(7, Field(1, node.SerializeAsString() + unknown)));
  Replace(opened, "n", "Fused");
  const onnx::ModelProto parsed = opened.Parsed();
  const onnx::NodeProto& made = parsed.graph().node(0);
  CHECK(made.op_type() == "Fused");
  CHECK(made.doc_string() == "doc");
  CHECK(made.metadata_props_size() == 1);
  CHECK(made.attribute_size() == 0);
  CHECK(made.unknown_fields().field_count() == 1);
}

TEST_CASE("nodes of inner graphs and functions are edited in place",
          "[proto]") {
  const Opened opened = Open(Parse(kModel).SerializeAsString());
  Replace(opened, "inner", "Fused");
  Replace(opened, "two", "Fused");
  const onnx::ModelProto parsed = opened.Parsed();
  const onnx::GraphProto& branch = parsed.graph().node(3).attribute(0).g();
  CHECK(Names(branch.node()) == std::vector<std::string>{"inner", "last"});
  CHECK(branch.node(0).op_type() == "Fused");
  CHECK(Names(parsed.functions(0).node()) ==
        std::vector<std::string>{"one", "two"});
  CHECK(parsed.functions(0).node(1).op_type() == "Fused");
}

TEST_CASE("erased values take their initializers and value_info along",
          "[proto]") {
  const Opened opened = Open(Parse(kModel).SerializeAsString());
  ir::Graph& graph = opened.model->graph;
  Replace(opened, "third", "Fused");
  ir::Node* second = opened.node("second");
  ir::Value* t = graph.FindValue("t");
  // Fused reads t no more: it is made anew without operands.
  ir::Node* fused = opened.node("third");
  ir::Value* u = graph.FindValue("u");
  graph.EraseNode(fused);
  graph.AddNodeOutput(graph.AddNode("ai.addnorm", "Source", second), u);
  graph.EraseNode(second);
  graph.EraseValue(t);
  const onnx::ModelProto parsed = opened.Parsed();
  CHECK(Names(parsed.graph().node()) ==
        std::vector<std::string>{"first", "", "branch"});
  REQUIRE(parsed.graph().value_info_size() == 1);
  CHECK(parsed.graph().value_info(0).name() == "s");
  CHECK(parsed.graph().initializer_size() == 1);
}

TEST_CASE("nodes are moved as bytes, and as few as can be", "[proto]") {
  onnx::ModelProto proto = Parse(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1] x) => (float[1] y) {
      [a] a = Neg(x) [b] b = Neg(x) [c] c = Neg(x) [d] d = Neg(x) [e] y = Neg(x)
    })");
  const Opened opened = Open(proto.SerializeAsString());
  opened.model->graph.MoveNodes({opened.node("b")}, nullptr);
  opened.model->graph.MoveNodes({opened.node("e")}, opened.node("c"));
  opened.model->graph.AddNodeOutput(
      opened.model->graph.AddNode("", "New", opened.node("c")),
      opened.model->graph.AddValue("n"));
  const std::string bytes = opened.Exported();
  onnx::ModelProto parsed;
  REQUIRE(parsed.ParseFromString(bytes));
  CHECK(Names(parsed.graph().node()) ==
        std::vector<std::string>{"a", "e", "", "c", "d", "b"});
  const auto rope = Export(*opened.file, *opened.model);
  int ranges = 0;
  for (const auto& segment : rope->segments()) ranges += segment.is_range();
  CHECK(ranges <= 6);  // head, a, e, c and d, b, tail
}

TEST_CASE("new functions, opset imports and the ir_version are inserted",
          "[proto]") {
  const Opened opened = Open(Parse(kModel).SerializeAsString());
  ir::Model& model = *opened.model;
  model.ir_version = 8;
  model.opset_imports.push_back(
      {.domain = "ai.addnorm", .version = 1, .added = true});
  ir::Function& old = model.functions.front();
  old.opset_imports.push_back(
      {.domain = "ai.addnorm", .version = 1, .added = true});
  ir::Function& made = *model.functions.emplace(model.functions.begin());
  made.domain = "ai.addnorm";
  made.name = "Fused";
  made.attributes = {"epsilon"};
  made.opset_imports = {{.domain = "", .version = 17}};
  made.body.SetPlace(&model, &made, nullptr);
  ir::Value* a = made.body.AddInput("a");
  ir::Node* node = made.body.AddNode("", "Neg");
  made.body.AddNodeInput(node, a);
  ir::Value* b = made.body.AddValue("b");
  made.body.AddNodeOutput(node, b);
  made.body.AddOutput(b);
  node->attributes.push_back(
      {.name = "e", .type = 1, .value = {}, .ref_attr_name = "epsilon"});
  ir::Tensor one{.name = "",
                 .type = ir::DataType::kFloat,
                 .dims = {1},
                 .elements = ir::InlineElements{"abcd"}};
  node->attributes.push_back(
      {.name = "t", .type = 4, .value = one, .ref_attr_name = {}});

  const onnx::ModelProto parsed = opened.Parsed();
  CHECK(parsed.ir_version() == 8);
  REQUIRE(parsed.opset_import_size() == 2);
  CHECK(parsed.opset_import(1).domain() == "ai.addnorm");
  REQUIRE(parsed.functions_size() == 2);
  const onnx::FunctionProto& f = parsed.functions(0);
  CHECK(f.name() == "Fused");
  CHECK(f.input(0) == "a");
  CHECK(f.output(0) == "b");
  CHECK(f.attribute(0) == "epsilon");
  CHECK(f.opset_import(0).version() == 17);
  CHECK(f.node(0).attribute(0).ref_attr_name() == "epsilon");
  CHECK(f.node(0).attribute(0).type() == onnx::AttributeProto::FLOAT);
  CHECK(f.node(0).attribute(1).t().raw_data() == "abcd");
  CHECK(parsed.functions(1).opset_import_size() == 2);

  // And what was written is read as the same again.
  const Opened again = Open(opened.Exported());
  CHECK(again.model->functions.size() == 2);
  CHECK(again.model->OpsetVersion("ai.addnorm") == 1);
}

TEST_CASE("a model without opset imports, functions or ir_version gets them",
          "[proto]") {
  const Opened opened = Open(Field(7, Field(2, "g")));
  opened.model->ir_version = 8;
  opened.model->opset_imports.push_back(
      {.domain = "d", .version = 1, .added = true});
  opened.model->functions.emplace_back().name = "F";
  const onnx::ModelProto parsed = opened.Parsed();
  CHECK(parsed.ir_version() == 8);
  CHECK(parsed.opset_import_size() == 1);
  CHECK(parsed.functions_size() == 1);
}

}  // namespace
}  // namespace addnorm::proto
