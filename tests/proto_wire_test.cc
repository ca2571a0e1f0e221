// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"
#include "proto/import.h"
#include "proto/model_file.h"
#include "proto/text.h"
#include "proto/wire.h"
#include "tests/support/catch.h"
#include "tests/support/proto_files.h"

namespace addnorm::proto {
namespace {

using std::string_literals::operator""s;
using tests::Field;
using tests::Message;
using tests::NumberField;
using tests::Varint;

constexpr std::string_view kModel = R"(
  <ir_version: 8, opset_import: ["" : 17, "my" : 1]>
  g (float[4] x, bool c) => (float[4] y) <float[4] w = {1, 2, 3, 4}, float[4] s> {
    s = Add(x, w)
    y = If (c) <
      then_branch = a () => (float[4] t) { t = Mul(s, s) },
      else_branch = b () => (float[4] e) <float[2] k = {5, 6}> { e = Sqrt(s) }
    >
  }
  <opset_import: ["" : 17], domain: "my">
  F (a) => (b) { b = Relu(a) }
)";

absl::StatusOr<std::shared_ptr<ModelFile>> Open(const std::string& bytes) {
  return ModelFile::FromBytes("model", bytes);
}

std::vector<RecordId> InRoot(const Document& document, Kind kind) {
  const RecordId root = kRoot;
  return document.Children({&root, 1}, kind);
}

std::string Body(const std::string& bytes, const Record& record) {
  return bytes.substr(record.body, record.end - record.body);
}

std::string Graph(const std::string& fields) { return Field(7, fields); }

// A model with one initializer of these fields.
std::string WithTensor(const std::string& fields) {
  return Graph(Field(5, fields));
}

TEST_CASE("a walk finds the messages that libprotobuf finds", "[proto]") {
  const std::string bytes = *SerializeText(kModel);
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(bytes));
  const auto file = Open(bytes);
  REQUIRE(file.ok());
  const Document& document = (*file)->document();
  const auto graphs = InRoot(document, Kind::kGraph);
  REQUIRE(graphs.size() == 1);

  const auto nodes = document.Children(graphs, Kind::kNode);
  REQUIRE(nodes.size() == 2);
  for (int i = 0; i < 2; ++i) {
    CHECK(Body(bytes, document.record(nodes[i])) ==
          model.graph().node(i).SerializeAsString());
  }
  const auto tensors = document.Children(graphs, Kind::kTensor);
  REQUIRE(tensors.size() == 1);
  CHECK(Body(bytes, document.record(tensors[0])) ==
        model.graph().initializer(0).SerializeAsString());
  CHECK(document.Children(graphs, Kind::kValueInfo).size() == 1);
  CHECK(InRoot(document, Kind::kOpsetImport).size() == 2);
  CHECK(InRoot(document, Kind::kIrVersion).size() == 1);

  // Only the attributes that hold graphs are worth a record.
  const auto attributes = document.Children({&nodes[1], 1}, Kind::kAttribute);
  REQUIRE(attributes.size() == 2);
  const auto inner = document.Children({&attributes[1], 1}, Kind::kGraph, 6);
  REQUIRE(inner.size() == 1);
  CHECK(document.Children(inner, Kind::kNode).size() == 1);
  CHECK(document.Children(inner, Kind::kTensor).size() == 1);

  const auto functions = InRoot(document, Kind::kFunction);
  REQUIRE(functions.size() == 1);
  CHECK(document.Children(functions, Kind::kNode).size() == 1);
  CHECK(document.Children(functions, Kind::kOpsetImport).size() == 1);
}

TEST_CASE("a tensor's payload is left out of the skeleton above 1 KiB",
          "[proto]") {
  const auto payloads = [](size_t size) {
    const auto file = Open(WithTensor(Field(9, std::string(size, 'x'))));
    REQUIRE(file.ok());
    const Document& document = (*file)->document();
    const auto tensors =
        document.Children(InRoot(document, Kind::kGraph), Kind::kTensor);
    REQUIRE(tensors.size() == 1);
    return document.Children(tensors, Kind::kPayload);
  };
  CHECK(payloads(kMaxSkeletonTensor - 3).empty());  // tag and length count too
  CHECK(payloads(kMaxSkeletonTensor - 2).size() == 1);
}

TEST_CASE("neighbouring pieces of a data field are one payload", "[proto]") {
  const std::string floats(512, '\0');
  const std::string one = "\x25"s + std::string(4, '\0');  // unpacked
  const std::string bytes =
      WithTensor(Field(4, floats) + one + Field(4, floats) + Field(8, "w") +
                 Field(4, floats));
  const auto file = Open(bytes);
  REQUIRE(file.ok());
  const Document& document = (*file)->document();
  const auto tensors =
      document.Children(InRoot(document, Kind::kGraph), Kind::kTensor);
  const auto runs = document.Children(tensors, Kind::kPayload);
  REQUIRE(runs.size() == 2);
  CHECK(document.record(runs[0]).index == 3);
  CHECK(document.record(runs[0]).end - document.record(runs[0]).begin ==
        2 * 515 + 5);
  CHECK(document.record(runs[1]).index == 1);
}

TEST_CASE("a known field of a foreign wire type is an unknown field",
          "[proto]") {
  const auto file =
      Open(Graph("") + NumberField(7, 3) + NumberField(25, 1) + Field(1, "x"));
  REQUIRE(file.ok());
  const Document& document = (*file)->document();
  CHECK(InRoot(document, Kind::kGraph).size() == 1);
  CHECK(InRoot(document, Kind::kFunction).empty());
  CHECK(InRoot(document, Kind::kIrVersion).empty());
}

TEST_CASE("what is no protobuf is refused with the byte and the reason",
          "[proto]") {
  struct Case {
    std::string bytes;
    std::string message;
  };
  const std::string head = NumberField(1, 8);  // two bytes
  const std::vector<Case> cases = {
      {head + "\x02\x01x"s, "byte 2: field number 0"},
      {head + "\x00\x01"s, "byte 2: field number 0"},
      {head + "\x3e"s, "byte 2: wire type 6"},
      {head + "\x3f"s, "byte 2: wire type 7"},
      {head + "\x3c"s, "byte 2: the end of a group that is not open"},
      {head + "\x3b\x44"s, "byte 3: the end of a group that is not open"},
      {head + "\x3b\x08\x01"s, "byte 5: a group that does not end"},
      {head + "\x3a\x05\x0a"s, "byte 2: a length of 5 where 1 bytes are left"},
      {head + "\x3a"s + Varint(1ull << 31),
       "byte 2: a length of 2147483648 where 0 bytes"},
      {head + "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s,
       "byte 3: a length that is too long"},
      {head + "\x3a\xff"s, "byte 3: a length that does not end"},
      {head + "\x08\xff"s, "byte 2: a number that does not end"},
      {head + "\x35\x01\x02"s, "byte 2: a number that does not end"},
      {head + "\xff"s, "byte 2: a tag that does not end"},
      {head + "\xba\x80\x80\x80\x80\x80\x00\x00"s,
       "byte 2: a tag that is too long"},
      {Graph("\x0a\x03\x0a\x05x"s),
       "byte 4: a length of 5 where 1 bytes are left"},
      {Graph("\x08\x80"s) + head, "byte 2: a number that does not end"},
  };
  for (const Case& c : cases) {
    INFO(c.message);
    const auto file = Open(c.bytes);
    REQUIRE_FALSE(file.ok());
    CHECK(file.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(Message(file.status()),
               ContainsSubstring("truncated or corrupt at " + c.message));
    onnx::ModelProto model;
    CHECK_FALSE(model.ParseFromString(c.bytes));
  }
}

TEST_CASE("nesting ends where libprotobuf's does", "[proto]") {
  // A node, an attribute and a graph a level.
  std::string graph;
  int deepest = 0;
  for (int level = 1; level <= 40; ++level) {
    const std::string bytes = Graph(graph);
    onnx::ModelProto model;
    const bool parses = model.ParseFromString(bytes);
    const auto file = Open(bytes);
    CHECK(file.ok() == parses);
    if (parses) deepest = level;
    if (!parses)
      CHECK_THAT(Message(file.status()),
                 ContainsSubstring("more than 100 levels"));
    graph = Field(1, Field(5, Field(6, graph)));
  }
  CHECK(deepest > 30);
}

TEST_CASE("deep groups are no danger", "[proto]") {
  const std::string bytes = Graph("") + std::string(1 << 20, '\x3b');
  CHECK_THAT(Message(Open(bytes).status()),
             ContainsSubstring("more than 100 levels"));
}

// Import must not accept what libprotobuf does not.
bool IsAccepted(const std::string& bytes) {
  const auto file = Open(bytes);
  if (!file.ok() || !Import(*file).ok()) return false;
  onnx::ModelProto model;
  CHECK(model.ParseFromString(bytes));
  return true;
}

TEST_CASE("every prefix of a model is refused or is a model", "[proto]") {
  const std::string bytes = *SerializeText(kModel);
  for (size_t size = 0; size < bytes.size(); ++size) {
    INFO(size);
    const bool accepted = IsAccepted(bytes.substr(0, size));
    // Behind the graph come the function and, before it, nothing that is
    // needed.
    if (size < 20) CHECK_FALSE(accepted);
  }
  CHECK(IsAccepted(bytes));
}

TEST_CASE("a model with one byte changed is refused or is a model", "[proto]") {
  const std::string bytes = *SerializeText(kModel);
  int accepted = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x02, 0x04, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      accepted += IsAccepted(changed);
    }
  }
  CHECK(accepted > 0);
}

TEST_CASE("a model with one length changed is refused or is a model",
          "[proto]") {
  const std::string bytes = *SerializeText(kModel);
  const auto file = Open(bytes);
  REQUIRE(file.ok());
  const Document& document = (*file)->document();
  for (RecordId id = 1; id < document.size(); ++id) {
    const Record& record = document.record(id);
    if (record.kind == Kind::kIrVersion) continue;
    const uint64_t length = record.end - record.body;
    for (const uint64_t other : {uint64_t{0}, length - 1, length + 1,
                                 uint64_t{1} << 31, uint64_t{1} << 63}) {
      const size_t tag = record.field < 16 ? 1 : 2;
      IsAccepted(bytes.substr(0, record.begin + tag) + Varint(other) +
                 bytes.substr(record.body));
    }
  }
  SUCCEED("none crashed");
}

}  // namespace
}  // namespace addnorm::proto
