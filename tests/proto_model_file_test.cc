// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "proto/check.h"
#include "proto/errors.h"
#include "proto/import.h"
#include "proto/infer_types.h"
#include "proto/model_file.h"
#include "proto/text.h"
#include "tests/support/catch.h"
#include "tests/support/proto_files.h"

namespace addnorm::proto {
namespace {

using std::string_literals::operator""s;
using tests::Message;
using tests::ScratchDirectory;

constexpr std::string_view kText = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[2,N] x, bool c) => (y, float[2,N] z) {
    s = Relu(x)
    y = Transpose(s)
    z = If (c) < then_branch = a () => (t) { t = Neg(s) },
                 else_branch = b () => (e) { e = Abs(s) } >
  })";

TEST_CASE("only a regular file is opened, and nothing hangs", "[proto]") {
  const ScratchDirectory scratch;
  REQUIRE(::mkfifo((scratch / "fifo").c_str(), 0600) == 0);
  const auto status = [&](const std::string& name) {
    return ModelFile::Open(scratch / name).status();
  };
  CHECK(status("missing").code() == absl::StatusCode::kNotFound);
  CHECK(Message(status("missing")) ==
        scratch / "missing" +
            ": no such file or directory\nhint: it was looked for in '" +
            scratch.path().string() + "'");
  CHECK(status("fifo").code() == absl::StatusCode::kNotFound);
  CHECK_THAT(Message(status("fifo")),
             ContainsSubstring("is not a regular file"));
  CHECK_THAT(Message(status(".")), ContainsSubstring("is a directory"));
}

TEST_CASE("files of other kinds are named in one line, with the way out",
          "[proto]") {
  struct Case {
    std::string bytes;
    const char* is;
  };
  const std::vector<Case> cases = {
      {"", "is empty"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0",
       "is a Git LFS pointer"},
      {"<!DOCTYPE html><html>", "is an HTML page"},
      {"PK\x03\x04\x14\0\0\0"s, "is a zip archive"},
      {"\x1f\x8b\x08\0\0\0\0\0"s, "is gzip data"},
      {std::string(257, 'a') + "ustar", "is a tar archive"},
      {"\x89HDF\r\n\x1a\n\0\0\0\0"s, "is an HDF5 file"},
      {"\x80\x02}q\0."s, "is a Python pickle"},
      {"\x3c\0\0\0\0\0\0\0{\"w\":{}}"s, "is a safetensors file"},
      {"\x1c\0\0\0TFL3\0\0\0\0"s, "is a TensorFlow Lite model"},
      {"\x1c\0\0\0ORTM\0\0\0\0"s, "is a model in ONNX Runtime's ORT format"},
      {"GGUF\x03\0\0\0"s, "is a GGUF file"},
      {"\x93NUMPY\x01\0v\0{'descr'"s, "is a NumPy array"},
      {"ftrt\0\0\0\0"s, "is a TensorRT engine"},
      {"<?xml version=\"1.0\"?><net/>", "is XML (an OpenVINO model, perhaps)"},
      {"\x08\x02\x08\x80\x08\x10\x01\x42\x01xJ\x04\0\0\0\0"s,
       "is one tensor (a TensorProto)"},
      {"\x0a\x02\x01\x02\x10\x0a\x52\x04\0\0\0\0"s,
       "is one tensor (a TensorProto)"},
      {"{\"error\": 1}\n", "is JSON"},
      {std::string(kText), "is a model as ONNX text"},
      {"this is not a model\n", "is text"},
      {std::string(1000, '\0'), "is zeros"},
  };
  for (const Case& c : cases) {
    INFO(c.is);
    const auto file = ModelFile::FromBytes("m", c.bytes);
    REQUIRE_FALSE(file.ok());
    CHECK(file.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(Message(file.status()), StartsWith("m: "s + c.is));
    CHECK_THAT(Message(file.status()),
               ContainsSubstring("not an ONNX model\nhint: "));
  }
}

TEST_CASE("a data file is told from a damaged model by its name", "[proto]") {
  const ScratchDirectory scratch;
  const std::string bytes = "\x3f\x80\x01\x7f\x3f\x12";
  for (const char* name : {"model.onnx.data", "model.onnx_data"}) {
    const auto file = ModelFile::Open(scratch.Write(name, bytes));
    CHECK_THAT(Message(file.status()), ContainsSubstring("is a data file"));
    CHECK_THAT(Message(file.status()),
               ContainsSubstring("hint: give the .onnx file"));
  }
  const auto file = ModelFile::Open(scratch.Write("model.onnx", bytes));
  CHECK_THAT(Message(file.status()), ContainsSubstring("may be incomplete"));
}

TEST_CASE("a model whose first bytes look like something else is a model",
          "[proto]") {
  // The producer's name puts '{"' where safetensors have it.
  const auto file = ModelFile::FromBytes(
      "m", tests::Field(2, "abcdef{\"") + tests::Field(7, ""));
  CHECK(file.ok());
}

TEST_CASE("a model of more than 2 GiB is refused with advice", "[proto]") {
  const ScratchDirectory scratch;
  const std::string path = scratch.Write("big.onnx", "\x08\x08");
  REQUIRE(::truncate(path.c_str(), 1ll << 31) == 0);
  const auto file = ModelFile::Open(path);
  CHECK(file.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(Message(file.status()),
             ContainsSubstring("hint: convert it to external data"));
}

TEST_CASE("a file that is written to while it is open is noticed", "[proto]") {
  const ScratchDirectory scratch;
  const std::string path = scratch.Write("model.onnx", *SerializeText(kText));
  const auto file = ModelFile::Open(path);
  REQUIRE(file.ok());
  CHECK((*file)->CheckUnchanged().ok());
  std::filesystem::resize_file(path, 10);
  CHECK((*file)->CheckUnchanged().code() == absl::StatusCode::kUnavailable);
  char buffer[20];
  CHECK((*file)->Read(0, 20, buffer).code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("text models are parsed, and the parser's throws are errors",
          "[proto]") {
  CHECK(SerializeText(kText).ok());
  for (const char* text :
       {"", "<", "no model", "<ir_version: 99999999999999999999>",
        "<ir_version: 8, opset_import: [\"\" : 17]> g () => () <float w = "
        "{1e999}> {}",
        "<ir_version: 8, opset_import: [\"\" : 17]> g () => () {} more"}) {
    INFO(text);
    const auto bytes = SerializeText(text);
    CHECK(bytes.status().code() == absl::StatusCode::kInvalidArgument);
  }
}

std::string Times(size_t count, std::string_view text) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::string NestedTypes(size_t levels) {
  return "g (" + Times(levels, "seq(") + "float[1]" + Times(levels, ")") +
         " x) => () {}";
}

std::string NestedGraphs(size_t levels) {
  return "g (bool c) => (bool y) {" +
         Times(levels, "y = If(c) <then_branch = h () => (bool z) {") +
         Times(levels, "z = Identity(c) }>") + "y = Identity(c) }";
}

TEST_CASE("text that is nested without end is refused, not followed",
          "[proto]") {
  CHECK(SerializeText(NestedTypes(20)).ok());
  CHECK(SerializeText(NestedGraphs(20)).ok());
  for (const std::string& text :
       {NestedTypes(300), NestedTypes(1'000'000), NestedGraphs(200'000)}) {
    CHECK_THAT(Message(SerializeText(text).status()),
               ContainsSubstring("more than 256 brackets in brackets"));
  }
  // Brackets in strings and comments are none, and closed ones are closed.
  const std::string brackets = Times(300, "(<");
  CHECK(SerializeText("# " + brackets + "\n" + NestedTypes(2)).ok());
  CHECK(SerializeText("g (float[1] \"" + brackets + "\\\"(\") => () {}").ok());
  CHECK(SerializeText("g (float[1] x) => () {" + Times(300, "a = Op(x) ") + "}")
            .ok());
}

TEST_CASE("a path may be a model or a text model", "[proto]") {
  const ScratchDirectory scratch;
  const auto text = OpenModelOrText(
      scratch.Write("m.onnxtxt", "# a comment\n" + std::string(kText)));
  REQUIRE(text.ok());
  CHECK(Import(*text).ok());
  CHECK(OpenModelOrText(scratch.Write("m.onnx", *SerializeText(kText))).ok());
  // What onnx's parser takes, also without versions before the graph.
  CHECK(OpenModelOrText(scratch.Write("bare", "g (float[2] x) => () {}")).ok());
  CHECK_THAT(
      Message(OpenModelOrText(scratch.Write("prose", "no model")).status()),
      ContainsSubstring("prose: is text, not an ONNX model\nhint: "));
  CHECK_THAT(
      Message(OpenModelOrText(scratch.Write("bad", "<ir_version: 8> g ("))
                  .status()),
      ContainsSubstring(
          "bad: is no ONNX text: [ParseError at position (line: 1 "
          "column: "));
  CHECK(OpenModelOrText(scratch / "missing").status().code() ==
        absl::StatusCode::kNotFound);
}

TEST_CASE("inference fills unknown types, in inner graphs too", "[proto]") {
  const auto file = OpenText("m", kText);
  REQUIRE(file.ok());
  const auto imported = Import(*file);
  INFO(imported.status());
  REQUIRE(imported.ok());
  ir::Model& model = *imported->model;
  CHECK_FALSE(model.graph.FindValue("s")->type.known());
  CHECK(InferTypes(**file, model).ok());
  CHECK(ir::ToString(model.graph.FindValue("s")->type) == "float[2,N]");
  CHECK(ir::ToString(model.graph.FindValue("y")->type) == "float[N,2]");
  const ir::Graph& branch = *model.graph.nodes().back().subgraphs()[0];
  CHECK(ir::ToString(branch.FindValue("t")->type) == "float[2,N]");
}

TEST_CASE("a Reshape has as many dims as its shape has elements", "[proto]") {
  // The contents of the shape are not known, its length is; as tf2onnx does.
  const auto file = OpenText("m", R"(<ir_version: 8, opset_import: ["" : 13]>
    g (float[n,3,4] x, float z, bool c, int64[k] k) => (float y, float o, float u)
    <int64[2] front = {0, 1}, int64[1] last = {4}> {
      shape = Shape(z) some = Gather(shape, front) dims = Concat<axis = 0>(some, last)
      r = Reshape(x, dims)
      s = Add(x, r)
      i = If(c) <then_branch = t () => (float e) { q = Reshape(x, dims) p = Relu(q) e = Relu(p) },
                 else_branch = f () => (float e) { e = Relu(x) }>
      y = Relu(s) o = Relu(i)
      l = Reshape(x, k) u = Relu(l) })");
  REQUIRE(file.ok());
  const auto imported = Import(*file);
  INFO(imported.status());
  REQUIRE(imported.ok());
  ir::Model& model = *imported->model;
  InferTypes(**file, model).IgnoreError();
  const auto rank = [](const ir::Graph& graph, std::string_view name) {
    const auto& shape = graph.FindValue(name)->type.shape;
    return shape ? static_cast<int>(shape->size()) : -1;
  };
  CHECK(rank(model.graph, "r") == 3);
  // And so has what is made of it, with what the other operand tells.
  CHECK_THAT(ir::ToString(model.graph.FindValue("s")->type),
             ContainsSubstring(",3,4]"));
  CHECK(rank(model.graph, "l") == -1);
  for (const ir::Node& node : model.graph.nodes()) {
    if (node.op_type() == "If") CHECK(rank(*node.subgraphs()[0], "p") == 3);
  }
}

TEST_CASE("what inference cannot know stays unknown, and is no error",
          "[proto]") {
  const auto file =
      OpenText("m", R"(<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    g (float[2] x) => (y) { s = Relu(x) t = my.Op(s) y = Relu(t) })");
  REQUIRE(file.ok());
  const auto imported = Import(*file);
  REQUIRE(imported.ok());
  InferTypes(**file, *imported->model).IgnoreError();
  CHECK(imported->model->graph.FindValue("s")->type.known());
  CHECK_FALSE(imported->model->graph.FindValue("y")->type.known());
}

TEST_CASE("ONNX's checker is asked in its own words", "[proto]") {
  const ScratchDirectory scratch;
  const std::string head = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) )";
  const auto check = [&](const std::string& nodes) {
    return Check(scratch.Write("m.onnx", *SerializeText(head + nodes)));
  };
  CHECK(check("{ y = Relu(x) }").ok());
  CHECK_THAT(Message(check("{ y = NoSuchOp(x) }")),
             ContainsSubstring("NoSuchOp"));
}

TEST_CASE("errno values become codes of the file system", "[proto]") {
  CHECK(ErrnoError(ENOENT, "f").code() == absl::StatusCode::kNotFound);
  CHECK(ErrnoError(EACCES, "f").code() == absl::StatusCode::kPermissionDenied);
  CHECK(ErrnoError(ENOSPC, "f").code() == absl::StatusCode::kResourceExhausted);
  CHECK(ErrnoError(EIO, "f").code() == absl::StatusCode::kUnavailable);
  CHECK(Message(ErrnoError(ENOSPC, "out.onnx")) ==
        "out.onnx: no space left on device");
}

}  // namespace
}  // namespace addnorm::proto
