// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <random>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"
#include "proto/file_descriptor.h"
#include "proto/model_file.h"
#include "proto/splice.h"
#include "tests/support/catch.h"
#include "tests/support/proto_files.h"

namespace addnorm::proto {
namespace {

using std::string_literals::operator""s;
using tests::Field;
using tests::NumberField;

std::shared_ptr<ModelFile> Open(const std::string& bytes) {
  auto file = ModelFile::FromBytes("model", bytes);
  REQUIRE(file.ok());
  return *file;
}

std::string Spliced(const ModelFile& file, const Splice& splice) {
  const auto rope = splice.Build();
  REQUIRE(rope.ok());
  const auto bytes = rope->Flatten(file);
  REQUIRE(bytes.ok());
  CHECK(rope->size() == bytes->size());
  return *bytes;
}

std::vector<RecordId> Graphs(const Document& document) {
  const RecordId root = kRoot;
  return document.Children({&root, 1}, Kind::kGraph);
}

std::string Node(const std::string& name) { return Field(1, Field(3, name)); }

// A model of random sizes: nodes at two levels, initializers and value_info.
onnx::ModelProto RandomModel(std::mt19937& random) {
  const auto up_to = [&](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n + 1));
  };
  onnx::ModelProto model;
  model.set_ir_version(8);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (int i = up_to(6); i >= 0; --i) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_name(std::string(up_to(200), 'n'));
    for (int k = up_to(2); k > 0; --k) {
      onnx::AttributeProto& attribute = *node.add_attribute();
      attribute.set_name("body");
      for (int inner = up_to(3); inner >= 0; --inner) {
        attribute.mutable_g()->add_node()->set_name(
            std::string(up_to(150), 'i'));
      }
    }
  }
  for (int i = up_to(3); i > 0; --i)
    graph.add_initializer()->set_raw_data(std::string(up_to(3000), 'r'));
  for (int i = up_to(3); i > 0; --i)
    graph.add_value_info()->set_name(std::string(up_to(40), 'v'));
  return model;
}

// Removes elements of a repeated field at random and the same records from the
// splice.
template <typename Items>
void EraseSome(std::mt19937& random, Items& items,
               const std::vector<RecordId>& records, Splice& splice) {
  REQUIRE(static_cast<size_t>(items.size()) == records.size());
  for (int i = items.size() - 1; i >= 0; --i) {
    if (random() % 3 != 0) continue;
    items.DeleteSubrange(i, 1);
    splice.Erase(records[static_cast<size_t>(i)]);
  }
}

TEST_CASE("erasing, inserting and moving gives what libprotobuf gives",
          "[proto]") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    onnx::ModelProto model = RandomModel(random);
    const auto file = Open(model.SerializeAsString());
    const Document& document = file->document();
    Splice splice(document);
    onnx::GraphProto& graph = *model.mutable_graph();
    const auto graphs = Graphs(document);
    const auto nodes = document.Children(graphs, Kind::kNode);
    // Inner graphs first: edits in a node that goes are dropped with it.
    for (int i = 0; i < graph.node_size(); ++i) {
      const auto attributes = document.Children(
          {&nodes[static_cast<size_t>(i)], 1}, Kind::kAttribute);
      for (int k = 0; k < graph.node(i).attribute_size(); ++k) {
        onnx::GraphProto& inner =
            *graph.mutable_node(i)->mutable_attribute(k)->mutable_g();
        const auto parts = document.Children(
            {&attributes[static_cast<size_t>(k)], 1}, Kind::kGraph);
        EraseSome(random, *inner.mutable_node(),
                  document.Children(parts, Kind::kNode), splice);
        const std::string name(random() % 300, 'x');
        splice.InsertAtStart(parts[0], Node(name));
        inner.add_node()->set_name(name);
        for (int m = inner.node_size() - 1; m > 0; --m)
          inner.mutable_node()->SwapElements(m, m - 1);
      }
    }
    // The first node goes to the end, then a new one comes before it.
    if (graph.node_size() > 1) {
      splice.MoveAfter(nodes.front(), nodes.back());
      for (int m = 0; m + 1 < graph.node_size(); ++m)
        graph.mutable_node()->SwapElements(m, m + 1);
      splice.InsertBefore(nodes[1], Node("new"));
      graph.add_node()->set_name("new");
      for (int m = graph.node_size() - 1; m > 0; --m)
        graph.mutable_node()->SwapElements(m, m - 1);
    }
    EraseSome(random, *graph.mutable_initializer(),
              document.Children(graphs, Kind::kTensor), splice);
    EraseSome(random, *graph.mutable_value_info(),
              document.Children(graphs, Kind::kValueInfo), splice);
    onnx::ModelProto spliced;
    REQUIRE(spliced.ParseFromString(Spliced(*file, splice)));
    CHECK(spliced.SerializeAsString() == model.SerializeAsString());
  }
}

TEST_CASE("without edits the output is one range of the input", "[proto]") {
  const auto file = Open(Field(7, Node("a")));
  const auto rope = Splice(file->document()).Build();
  REQUIRE(rope.ok());
  REQUIRE(rope->segments().size() == 1);
  CHECK(rope->segments()[0].is_range());
  CHECK(rope->size() == file->size());
}

TEST_CASE("bytes around an edit stay as they are", "[proto]") {
  // Unknown fields, a padded length of a node, a group, a scalar given twice.
  const std::string padded = "\x0a\x83\x80\x00\x1a\x01q"s;
  const std::string odd =
      NumberField(99, 7) + "\x93\x0b\x08\x01\x94\x0b"s + NumberField(1, 3);
  const std::string before =
      odd + Field(7, Field(88, "u") + padded + Node("gone") + Field(2, "g"));
  const std::string after =
      odd + Field(7, Field(88, "u") + padded + Field(2, "g"));
  const auto file = Open(before);
  const Document& document = file->document();
  Splice splice(document);
  splice.Erase(document.Children(Graphs(document), Kind::kNode)[1]);
  CHECK(Spliced(*file, splice) == after);
}

TEST_CASE("lengths of enclosing messages change their own length", "[proto]") {
  const size_t size =
      GENERATE(100, 123, 124, 125, 126, 127, 128, 16377, 16378, 16383, 16384);
  const auto file = Open(Field(7, Node("a")));
  const Document& document = file->document();
  Splice splice(document);
  splice.InsertAtEnd(Graphs(document)[0], Node(std::string(size, 'n')));
  CHECK(Spliced(*file, splice) ==
        Field(7, Node("a") + Node(std::string(size, 'n'))));
}

TEST_CASE("edits at one place keep their order", "[proto]") {
  const auto file = Open(Field(7, Node("a") + Node("b") + Node("c")));
  const Document& document = file->document();
  const auto nodes = document.Children(Graphs(document), Kind::kNode);
  Splice splice(document);
  splice.Erase(nodes[1]);
  splice.InsertBefore(nodes[1], Node("1"));
  splice.InsertAfter(nodes[0], Node("2"));
  splice.MoveBefore(nodes[2], nodes[1]);
  splice.InsertBefore(nodes[1], Node("3"));
  CHECK(Spliced(*file, splice) ==
        Field(7, Node("a") + Node("1") + Node("2") + Node("c") + Node("3")));
}

TEST_CASE("a moved record takes the edits inside it along", "[proto]") {
  const std::string inner = Field(5, Field(6, Node("x") + Node("y")));
  const auto file = Open(Field(7, Field(1, inner) + Node("b")));
  const Document& document = file->document();
  const auto nodes = document.Children(Graphs(document), Kind::kNode);
  const auto attributes =
      document.Children({nodes.data(), 1}, Kind::kAttribute);
  const auto graphs = document.Children(attributes, Kind::kGraph);
  Splice splice(document);
  splice.Erase(document.Children(graphs, Kind::kNode)[0]);
  splice.MoveAfter(nodes[0], nodes[1]);
  CHECK(Spliced(*file, splice) ==
        Field(7, Node("b") + Field(1, Field(5, Field(6, Node("y"))))));
}

TEST_CASE("an output that protobuf could not read is refused", "[proto]") {
  // One byte below the limit, as a file of holes: a graph with one tensor.
  constexpr uint64_t kMax = 0x7fffffff;
  const uint64_t raw = kMax - 3 * 6;
  const std::string head = "\x3a"s + tests::Varint(raw + 12) + "\x2a"s +
                           tests::Varint(raw + 6) + "\x4a"s +
                           tests::Varint(raw);
  const FileDescriptor fd(::memfd_create("model", MFD_CLOEXEC));
  REQUIRE(WriteFully(fd.get(), head.data(), head.size(), 0) == 0);
  REQUIRE(::ftruncate(fd.get(), kMax) == 0);
  const auto file = ModelFile::FromDescriptor(fd.get(), "model", "");
  REQUIRE(file.ok());
  Splice splice((*file)->document());
  splice.InsertAtEnd(kRoot, Field(6, "more"));
  const auto rope = splice.Build();
  REQUIRE_FALSE(rope.ok());
  CHECK(rope.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(tests::Message(rope.status()), ContainsSubstring("external data"));
}

}  // namespace
}  // namespace addnorm::proto
