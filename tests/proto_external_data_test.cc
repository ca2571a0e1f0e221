// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "onnx/onnx_pb.h"
#include "proto/external_data.h"
#include "proto/import.h"
#include "tests/support/catch.h"
#include "tests/support/proto_files.h"

namespace addnorm::proto {
namespace {

namespace fs = std::filesystem;
using tests::Message;
using tests::ScratchDirectory;

constexpr uint64_t kSize = 32;

absl::StatusOr<DataRegion> Resolve(const std::string& model,
                                   const DataEntries& entries,
                                   Lookup lookup = Lookup::kKernel,
                                   std::optional<uint64_t> size = kSize) {
  static std::vector<std::unique_ptr<ExternalData>>
      held;  // regions point into it
  held.push_back(std::make_unique<ExternalData>(model, lookup));
  return held.back()->Resolve(entries, size);
}

TEST_CASE("a location is followed inside the model's directory", "[proto]") {
  const Lookup lookup = GENERATE(Lookup::kKernel, Lookup::kComponents);
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("m/model.onnx", "");
  scratch.Write("m/w.bin", std::string(kSize, 'w'));
  scratch.Write("m/sub/v.bin", std::string(kSize, 'v'));
  scratch.Write("m/a..b.bin", std::string(kSize, 'a'));
  fs::create_symlink("sub", scratch / "m/link");
  fs::create_symlink("../w.bin", scratch / "m/sub/up");
  fs::create_symlink(scratch / "m/w.bin", scratch / "m/absolute");
  fs::create_hard_link(scratch / "m/w.bin", scratch / "m/hard");
  for (const char* location :
       {"w.bin", "./w.bin", "sub/v.bin", "sub/../w.bin", "sub//./v.bin",
        "link/v.bin", "link/up", "absolute", "hard", "a..b.bin"}) {
    INFO(location);
    const auto region = Resolve(model, {{"location", location}}, lookup);
    INFO(region.status());
    REQUIRE(region.ok());
    CHECK(region->length == kSize);
    CHECK(region->file->location == location);
  }
}

TEST_CASE("a location that ends in a slash names no file", "[proto]") {
  const Lookup lookup = GENERATE(Lookup::kKernel, Lookup::kComponents);
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("m/model.onnx", "");
  scratch.Write("m/w.bin", std::string(kSize, 'w'));
  fs::create_directory(scratch / "m/sub");
  fs::create_symlink("w.bin/", scratch / "m/link");
  for (const char* location : {"w.bin/", "w.bin/.", "w.bin//", "link"}) {
    INFO(location);
    const auto region = Resolve(model, {{"location", location}}, lookup);
    CHECK(region.status().code() == absl::StatusCode::kNotFound);
  }
  CHECK_THAT(Message(Resolve(model, {{"location", "sub/"}}, lookup).status()),
             ContainsSubstring("is a directory"));
}

TEST_CASE("a location that leads outside is refused", "[proto]") {
  const Lookup lookup = GENERATE(Lookup::kKernel, Lookup::kComponents);
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("m/model.onnx", "");
  scratch.Write("out.bin", std::string(kSize, 'x'));
  scratch.Write("m-beside/w.bin",
                std::string(kSize, 'x'));  // a prefix is not a parent
  fs::create_symlink("../out.bin", scratch / "m/file");
  fs::create_symlink("..", scratch / "m/up");
  fs::create_symlink(scratch.path(), scratch / "m/absolute");
  fs::create_symlink("../m-beside", scratch / "m/beside");
  fs::create_symlink("loop", scratch / "m/loop");
  for (const char* location :
       {"../out.bin", "sub/../../out.bin", "file", "up/out.bin",
        "absolute/out.bin", "beside/w.bin", "/etc/hostname", ""}) {
    INFO(location);
    const auto region = Resolve(model, {{"location", location}}, lookup);
    REQUIRE_FALSE(region.ok());
    CHECK(region.status().code() == absl::StatusCode::kInvalidArgument);
  }
  const std::string longer_than_a_path = std::string(5000, '/') + "w.bin";
  CHECK(Resolve(model, {{"location", "m" + longer_than_a_path}}, lookup)
            .status()
            .code() == absl::StatusCode::kInvalidArgument);
  CHECK_FALSE(Resolve(model, {{"location", "loop"}}, lookup).ok());
  CHECK_FALSE(
      Resolve(model, {{"location", std::string_view("w\0x", 3)}}, lookup).ok());
  CHECK_FALSE(Resolve(model, {{"location", "sub\\w.bin"}}, lookup).ok());
}

TEST_CASE("a bare model name means the working directory", "[proto]") {
  const ScratchDirectory scratch;
  scratch.Write("m/model.onnx", "");
  scratch.Write("m/w.bin", std::string(kSize, 'w'));
  fs::create_symlink("/etc", scratch / "m/etc");
  const fs::path before = fs::current_path();
  fs::current_path(scratch / "m");
  for (const char* model : {"model.onnx", "./model.onnx"}) {
    INFO(model);
    CHECK(Resolve(model, {{"location", "w.bin"}}, Lookup::kKernel).ok());
    CHECK(
        Message(Resolve(model, {{"location", "etc/hostname"}}, Lookup::kKernel)
                    .status()) ==
        "external data location 'etc/hostname' leads outside the model's "
        "directory");
  }
  fs::current_path(before);
}

TEST_CASE("data of a linked model may lie beside the link or beside its target",
          "[proto]") {
  const Lookup lookup = GENERATE(Lookup::kKernel, Lookup::kComponents);
  const ScratchDirectory scratch;
  // The layout of Hugging Face caches.
  scratch.Write("blobs/aaa", "");
  scratch.Write("blobs/bbb", std::string(kSize, 'w'));
  scratch.Write("secret", std::string(kSize, 's'));
  fs::create_directories(scratch / "snapshots/r1");
  fs::create_symlink("../../blobs/aaa", scratch / "snapshots/r1/model.onnx");
  fs::create_symlink("../../blobs/bbb",
                     scratch / "snapshots/r1/model.onnx.data");
  fs::create_symlink("../../secret", scratch / "snapshots/r1/stolen");
  const std::string model = scratch / "snapshots/r1/model.onnx";
  CHECK(Resolve(model, {{"location", "model.onnx.data"}}, lookup).ok());
  CHECK(Resolve(model, {{"location", "bbb"}}, lookup).ok());
  CHECK_FALSE(Resolve(model, {{"location", "stolen"}}, lookup).ok());
  const auto missing = Resolve(model, {{"location", "nowhere"}}, lookup);
  CHECK(missing.status().code() == absl::StatusCode::kNotFound);
  CHECK_THAT(Message(missing.status()),
             ContainsSubstring("snapshots/r1' and '"));
}

TEST_CASE("only regular files hold data, and nothing hangs", "[proto]") {
  const Lookup lookup = GENERATE(Lookup::kKernel, Lookup::kComponents);
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("model.onnx", "");
  REQUIRE(::mkfifo((scratch / "fifo").c_str(), 0600) == 0);
  fs::create_directory(scratch / "dir");
  fs::create_symlink("nowhere", scratch / "dangling");
  CHECK_THAT(Message(Resolve(model, {{"location", "fifo"}}, lookup).status()),
             ContainsSubstring("'fifo' is not a regular file"));
  CHECK_THAT(Message(Resolve(model, {{"location", "dir"}}, lookup).status()),
             ContainsSubstring("'dir' is a directory"));
  CHECK_THAT(Message(Resolve(model, {{"location", "."}}, lookup).status()),
             ContainsSubstring("'.' is a directory"));
  CHECK(Resolve(model, {{"location", "dangling"}}, lookup).status().code() ==
        absl::StatusCode::kNotFound);
}

TEST_CASE("offset and length are strict decimal numbers inside the file",
          "[proto]") {
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("model.onnx", "");
  scratch.Write("w.bin", std::string(100, 'w'));
  const auto resolve = [&](const char* offset, const char* length,
                           std::optional<uint64_t> size = kSize) {
    return Resolve(
        model, {{"location", "w.bin"}, {"offset", offset}, {"length", length}},
        Lookup::kKernel, size);
  };
  CHECK(resolve("68", "32").ok());
  CHECK(resolve("68", "0").ok());      // 0 stands for what the tensor needs
  CHECK(resolve("100", "0", 0).ok());  // no elements, at the end
  CHECK(resolve("7", "5", std::nullopt)->length == 5);
  CHECK(resolve("7", "0", std::nullopt)->length == 93);  // all that there is
  CHECK_THAT(
      Message(resolve("69", "32").status()),
      ContainsSubstring("needs bytes 69 to 101 of 'w.bin', which has 100"));
  CHECK_THAT(Message(resolve("18446744073709551600", "32").status()),
             ContainsSubstring("to beyond 2^64 of 'w.bin'"));
  CHECK_THAT(Message(resolve("0", "28").status()),
             ContainsSubstring("length 28, expected 32"));
  for (const char* bad :
       {"-4", "+4", "0x0", "4 ", " 4", "1e2", "", "18446744073709551616"}) {
    INFO(bad);
    CHECK_THAT(Message(resolve(bad, "32").status()),
               ContainsSubstring("expected a decimal number"));
    CHECK_FALSE(resolve("0", bad).ok());
  }
}

TEST_CASE("a location is given once, and other keys are ignored", "[proto]") {
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("model.onnx", "");
  scratch.Write("w.bin", std::string(kSize, 'w'));
  CHECK(Resolve(model,
                {{"checksum", "?"}, {"location", "w.bin"}, {"basepath", "/"}})
            .ok());
  CHECK_FALSE(
      Resolve(model, {{"location", "w.bin"}, {"location", "w.bin"}}).ok());
  CHECK_FALSE(
      Resolve(model, {{"location", "w.bin"}, {"offset", "0"}, {"offset", "0"}})
          .ok());
  CHECK(Message(Resolve(model, {{"offset", "0"}}).status()) ==
        "is external but has no location");
}

TEST_CASE("a model that is not a file has no external data", "[proto]") {
  const auto region = Resolve("", {{"location", "w.bin"}});
  CHECK(region.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(Message(region.status()),
             ContainsSubstring("hint: give the model's path"));
}

// ---- tensors wherever they sit

onnx::TensorProto External(const std::string& location) {
  onnx::TensorProto tensor;
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(8);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& entry = *tensor.add_external_data();
  entry.set_key("location");
  entry.set_value(location);
  return tensor;
}

absl::StatusOr<Imported> ImportFrom(const ScratchDirectory& scratch,
                                    const onnx::ModelProto& model) {
  auto file =
      ModelFile::Open(scratch.Write("model.onnx", model.SerializeAsString()));
  if (!file.ok()) return file.status();
  return Import(*file);
}

TEST_CASE("external elements are read through the model's reader", "[proto]") {
  const ScratchDirectory scratch;
  std::string bytes;
  for (int i = 0; i < 40; ++i) bytes += static_cast<char>(i);
  scratch.Write("w.bin", bytes);
  onnx::ModelProto model;
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor = External("w.bin");
  tensor.set_raw_data("left over");  // data_location decides
  auto& offset = *tensor.add_external_data();
  offset.set_key("offset");
  offset.set_value("8");
  const auto imported = ImportFrom(scratch, model);
  INFO(imported.status());
  REQUIRE(imported.ok());
  const ir::Tensor& w = *imported->model->graph.FindValue("w")->initializer();
  CHECK(*imported->model->reader->Read(w) == bytes.substr(8));
  scratch.Write("w.bin", "short");
  CHECK(imported->model->reader->Read(w).status().code() ==
        absl::StatusCode::kUnavailable);
}

TEST_CASE("tensors are checked wherever they sit", "[proto]") {
  const ScratchDirectory scratch;
  const std::string bad = "../out.bin";
  onnx::ModelProto model;
  model.mutable_graph()->set_name("g");
  onnx::NodeProto node;
  node.set_op_type("Op");
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("a");

  SECTION("in an attribute") { *attribute.mutable_t() = External(bad); }
  SECTION("in a list of tensors") { *attribute.add_tensors() = External(bad); }
  SECTION("in a sparse tensor") {
    *attribute.mutable_sparse_tensor()->mutable_values() = External(bad);
  }
  SECTION("in a list of sparse tensors") {
    *attribute.add_sparse_tensors()->mutable_indices() = External(bad);
  }
  SECTION("in a subgraph") {
    *attribute.mutable_g()->add_initializer() = External(bad);
  }
  SECTION("in a sparse initializer") {
    *model.mutable_graph()->add_sparse_initializer()->mutable_values() =
        External(bad);
  }
  SECTION("in a function") {
    onnx::NodeProto inner = node;
    *inner.mutable_attribute(0)->mutable_t() = External(bad);
    *model.add_functions()->add_node() = inner;
  }
  SECTION("in a function's default") {
    *model.add_functions()->add_attribute_proto()->mutable_t() = External(bad);
  }
  SECTION("in training info") {
    *model.add_training_info()->mutable_algorithm()->add_initializer() =
        External(bad);
  }
  if (attribute.has_sparse_tensor())
    attribute.set_type(onnx::AttributeProto::SPARSE_TENSOR);
  if (attribute.sparse_tensors_size() > 0)
    attribute.set_type(onnx::AttributeProto::SPARSE_TENSORS);
  *model.mutable_graph()->add_node() = node;
  const auto imported = ImportFrom(scratch, model);
  REQUIRE_FALSE(imported.ok());
  CHECK_THAT(Message(imported.status()),
             ContainsSubstring("tensor 'w': external data location"));
}

TEST_CASE("a string tensor cannot be external", "[proto]") {
  const ScratchDirectory scratch;
  scratch.Write("w.bin", "x");
  onnx::ModelProto model;
  *model.mutable_graph()->add_initializer() = External("w.bin");
  model.mutable_graph()->mutable_initializer(0)->set_data_type(
      onnx::TensorProto::STRING);
  CHECK_THAT(Message(ImportFrom(scratch, model).status()),
             ContainsSubstring(
                 "tensor 'w': is of type string, which cannot be external"));
}

}  // namespace
}  // namespace addnorm::proto
