// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Outputs in another folder than the model: what becomes of its data files.
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"
#include "proto/file_output.h"
#include "proto/import.h"
#include "tests/support/catch.h"
#include "tests/support/model_output.h"
#include "tests/support/proto_files.h"

namespace addnorm::proto {
namespace {

namespace fs = std::filesystem;
using tests::Message;
using tests::ModelBytes;
using tests::ScratchDirectory;
using tests::Write;

using Names = std::vector<std::string>;

TEST_CASE("two spellings of one location are one copy", "[proto]") {
  const ScratchDirectory scratch;
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(ModelBytes("w.bin")));
  onnx::TensorProto& twin = *model.mutable_graph()->add_initializer();
  twin = model.graph().initializer(0);
  twin.set_name("v");
  twin.mutable_external_data(0)->set_value("./w.bin");
  const std::string path =
      scratch.Write("in/model.onnx", model.SerializeAsString());
  scratch.Write("in/w.bin", "data");
  fs::create_directory(scratch / "out");
  CHECK(Write(path, scratch / "out/model.onnx", {.copy_data_up_to = UINT64_MAX})
            .ok());
  CHECK(scratch.Read("out/w.bin") == "data");
}

TEST_CASE("an output elsewhere needs copies of the data files", "[proto]") {
  const ScratchDirectory scratch;
  const std::string model =
      scratch.Write("in/model.onnx", ModelBytes("sub/w.bin"));
  scratch.Write("in/sub/w.bin", "data");
  fs::create_directory(scratch / "out");
  const std::string target = scratch / "out/model.onnx";
  const WriteOptions copy{.copy_data_up_to = UINT64_MAX};

  SECTION("refused by default") {
    const absl::Status status = Write(model, target);
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK_THAT(Message(status), ContainsSubstring("hint: --data=copy"));
    CHECK(fs::is_empty(scratch / "out"));
  }
  SECTION("refused if they are more than is copied unasked") {
    const absl::Status status = Write(model, target, {.copy_data_up_to = 3});
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK_THAT(Message(status),
               ContainsSubstring("4 bytes of external data ('sub/w.bin'), more "
                                 "than the 3 bytes that are copied without "
                                 "being asked\nhint: --data=copy"));
  }
  SECTION("copied as real files on request") {
    REQUIRE(Write(model, target, copy).ok());
    CHECK(scratch.Read("out/sub/w.bin") == "data");
    struct stat info {};
    REQUIRE(::lstat((scratch / "out/sub/w.bin").c_str(), &info) == 0);
    CHECK(S_ISREG(info.st_mode));
    CHECK(info.st_nlink == 1);
    // Again, over itself.
    CHECK(Write(model, target, {.force = true, .copy_data_up_to = 4}).ok());
    CHECK(scratch.Names() == Names{"in", "in/model.onnx", "in/sub",
                                   "in/sub/w.bin", "out", "out/model.onnx",
                                   "out/sub", "out/sub/w.bin"});
  }
  SECTION("not over a foreign file, with force or without") {
    const bool force = GENERATE(false, true);
    const std::string theirs = GENERATE("theirs", "datA", "");
    scratch.Write("out/sub/w.bin", theirs);
    const absl::Status status =
        Write(model, target, {.force = force, .copy_data_up_to = UINT64_MAX});
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK_THAT(Message(status), ContainsSubstring("is never replaced\nhint: "
                                                  "write the output to another "
                                                  "folder"));
    CHECK(scratch.Read("out/sub/w.bin") == theirs);
    CHECK_FALSE(scratch.Exists("out/model.onnx"));
  }
  SECTION("not where an equal file is already, which stays as it is") {
    scratch.Write("out/sub/w.bin", "data");
    struct stat before {};
    REQUIRE(::stat((scratch / "out/sub/w.bin").c_str(), &before) == 0);
    CHECK(Write(model, target).ok());  // nothing needs to be copied
    struct stat after {};
    REQUIRE(::stat((scratch / "out/sub/w.bin").c_str(), &after) == 0);
    CHECK(before.st_ino == after.st_ino);
    CHECK(before.st_ctim.tv_nsec == after.st_ctim.tv_nsec);
  }
  SECTION("an equal file stays when the output fails") {
    scratch.Write("out/sub/w.bin", "data");
    WriteOptions failing = copy;
    failing.before_publish = [](std::shared_ptr<ModelFile> /*written*/) {
      return absl::InternalError("no");
    };
    CHECK_FALSE(Write(model, target, failing).ok());
    CHECK(scratch.Read("out/sub/w.bin") == "data");
  }
  SECTION("not into what is no file") {
    fs::create_directories(scratch / "out/sub/w.bin");
    CHECK_THAT(Message(Write(model, target, copy)),
               ContainsSubstring("sub/w.bin: is no regular file"));
    fs::remove(scratch / "out/sub/w.bin");
    fs::create_symlink("nowhere", scratch / "out/sub/w.bin");
    CHECK_THAT(Message(Write(model, target, copy)),
               ContainsSubstring("sub/w.bin: is a link to nowhere"));
  }
  SECTION("not to the place of the output itself") {
    fs::create_directory(scratch / "out/sub");
    const absl::Status status = Write(
        scratch.Write("in/own.onnx", ModelBytes("model.onnx")), target, copy);
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK_THAT(
        Message(status),
        ContainsSubstring("is where the model's data file 'model.onnx' "
                          "must go\nhint: give the output another name"));
    CHECK_FALSE(scratch.Exists("out/model.onnx"));
  }
  SECTION("not through a link") {
    fs::create_directory(scratch / "away");
    fs::create_symlink("../away", scratch / "out/sub");
    const absl::Status status = Write(model, target, copy);
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK_THAT(Message(status),
               ContainsSubstring("a link leads outside its folder"));
    CHECK(fs::is_empty(scratch / "away"));
  }
  SECTION("gone again with an output that fails") {
    WriteOptions failing = copy;
    failing.before_publish = [&](std::shared_ptr<ModelFile> written) {
      CHECK(scratch.Read("out/sub/w.bin") == "data");  // the hook sees them
      CHECK(Import(written).ok());
      return absl::InternalError("no");
    };
    CHECK_FALSE(Write(model, target, failing).ok());
    CHECK(fs::is_empty(scratch / "out"));
  }
}

TEST_CASE("progress counts the output and the copies, to the end", "[proto]") {
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("in/model.onnx", ModelBytes("w.bin"));
  scratch.Write("in/w.bin", "data");
  fs::create_directory(scratch / "out");
  std::vector<uint64_t> done;
  uint64_t total = 0;
  WriteOptions options{.copy_data_up_to = UINT64_MAX};
  options.on_progress = [&](uint64_t bytes, uint64_t of) {
    done.push_back(bytes);
    total = of;
  };
  REQUIRE(Write(model, scratch / "out/model.onnx", options).ok());
  const uint64_t output = ModelBytes("w.bin").size() + 2;
  CHECK(total == output + 4);
  CHECK(done == std::vector<uint64_t>{output - 2, output, output + 4});
}

TEST_CASE("a link whose data lie beside its target gets no unsound output",
          "[proto]") {
  const ScratchDirectory scratch;
  scratch.Write("real/model.onnx", ModelBytes("w.bin"));
  scratch.Write("real/w.bin", "data");
  fs::create_symlink("real/model.onnx", scratch / "model.onnx");
  const absl::Status status =
      Write(scratch / "model.onnx", scratch / "out.onnx");
  CHECK(status.code() == absl::StatusCode::kNotFound);
  CHECK_THAT(Message(status), ContainsSubstring("beside the link's target"));
  CHECK(Write(scratch / "model.onnx", scratch / "real/out.onnx").ok());
}

}  // namespace
}  // namespace addnorm::proto
