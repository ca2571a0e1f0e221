// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "proto/copy_range.h"
#include "proto/export.h"
#include "proto/file_output.h"
#include "proto/import.h"
#include "proto/temporary_file.h"
#include "tests/support/catch.h"
#include "tests/support/model_output.h"
#include "tests/support/proto_files.h"

namespace addnorm::proto {
namespace {

namespace fs = std::filesystem;
using tests::Message;
using tests::ModelBytes;
using tests::OpenAndImport;
using tests::Output;
using tests::ScratchDirectory;
using tests::Write;

using Names = std::vector<std::string>;

mode_t ModeOf(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

TEST_CASE("an output appears whole, with nothing beside it", "[proto]") {
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("model.onnx", ModelBytes());
  REQUIRE(Write(model, scratch / "out.onnx").ok());
  CHECK(scratch.Read("out.onnx") == ModelBytes() + "\x78\x01");
  CHECK(scratch.Names() == Names{"model.onnx", "out.onnx"});
  const mode_t mask = ::umask(027);
  REQUIRE(Write(model, scratch / "masked.onnx").ok());
  ::umask(mask);
  CHECK(ModeOf(scratch / "masked.onnx") == 0640);
}

TEST_CASE("an existing output is refused, or replaced with its mode",
          "[proto]") {
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("model.onnx", ModelBytes());
  const std::string out = scratch.Write("out.onnx", std::string(100'000, 'o'));
  fs::permissions(out, fs::perms{0604});
  const absl::Status refused = Write(model, out);
  CHECK(refused.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(Message(refused),
             ContainsSubstring("exists already\nhint: --force"));
  CHECK(scratch.Read("out.onnx").size() == 100'000);
  REQUIRE(Write(model, out, {.force = true}).ok());
  CHECK(scratch.Read("out.onnx").size() == ModelBytes().size() + 2);
  CHECK(ModeOf(out) == 0604);
}

TEST_CASE("inputs are never overwritten, by whatever name", "[proto]") {
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("model.onnx", ModelBytes("w.bin"));
  scratch.Write("w.bin", "data");
  fs::create_hard_link(model, scratch / "hard.onnx");
  fs::create_symlink("w.bin", scratch / "link.onnx");
  for (const char* target : {"model.onnx", "hard.onnx", "w.bin", "link.onnx"}) {
    INFO(target);
    const absl::Status status = Write(model, scratch / target, {.force = true});
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK_THAT(Message(status),
               ContainsSubstring("which is never overwritten"));
  }
  CHECK(scratch.Read("w.bin") == "data");
  CHECK(scratch.Read("model.onnx") == ModelBytes("w.bin"));
}

TEST_CASE("a linked output replaces what the link stands for", "[proto]") {
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("model.onnx", ModelBytes());
  scratch.Write("real/old.onnx", "old");
  fs::create_symlink("real/old.onnx", scratch / "link.onnx");
  fs::create_symlink("real/new.onnx", scratch / "dangling.onnx");
  REQUIRE(Write(model, scratch / "link.onnx", {.force = true}).ok());
  REQUIRE(Write(model, scratch / "dangling.onnx").ok());
  CHECK(fs::is_symlink(scratch / "link.onnx"));
  CHECK(scratch.Read("real/old.onnx") == ModelBytes() + "\x78\x01");
  CHECK(scratch.Read("real/new.onnx") == ModelBytes() + "\x78\x01");
}

TEST_CASE("a target that cannot be is an error of the file system", "[proto]") {
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("model.onnx", ModelBytes());
  fs::create_directory(scratch / "dir");
  CHECK(Write(model, scratch / "nodir/out.onnx").code() ==
        absl::StatusCode::kNotFound);
  CHECK(Message(Write(model, scratch / "dir")) ==
        scratch / "dir" + ": is a directory");
  CHECK(Write(model, scratch / "model.onnx/out.onnx").code() ==
        absl::StatusCode::kNotFound);
  CHECK(Write(model, "/dev/full").code() ==
        absl::StatusCode::kResourceExhausted);
  CHECK(scratch.Names() == Names{"dir", "model.onnx"});
}

TEST_CASE("devices and pipes are written directly", "[proto]") {
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("model.onnx", ModelBytes());
  CHECK(Write(model, "/dev/null").ok());
  const std::string fifo = scratch / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  std::string received;
  std::thread reader([&] {
    const FileDescriptor fd(::open(fifo.c_str(), O_RDONLY));
    char byte = 0;
    while (::read(fd.get(), &byte, 1) == 1) received += byte;
  });
  CHECK(Write(model, fifo).ok());
  reader.join();
  CHECK(received == ModelBytes() + "\x78\x01");
  // A descriptor that is open on a regular file is not replaced by a new file.
  const FileDescriptor open(
      ::open((scratch / "open").c_str(), O_CREAT | O_WRONLY, 0600));
  CHECK(Write(model, "/proc/self/fd/" + std::to_string(open.get())).ok());
  CHECK(scratch.Read("open") == received);
}

TEST_CASE("a pipe that nobody reads any more is no error", "[proto]") {
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("model.onnx", ModelBytes());
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ::close(ends[0]);
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  CHECK(Write(model, "/dev/fd/" + std::to_string(ends[1])).ok());
  ::signal(SIGPIPE, before);
  ::close(ends[1]);
}

TEST_CASE("what the hook refuses is not published", "[proto]") {
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("model.onnx", ModelBytes());
  uint64_t seen = 0;
  WriteOptions options;
  options.before_publish = [&](std::shared_ptr<ModelFile> written) {
    seen = written->size();
    CHECK(Import(written).ok());
    return absl::InternalError("no");
  };
  CHECK(Write(model, scratch / "out.onnx", options).code() ==
        absl::StatusCode::kInternal);
  CHECK(seen == ModelBytes().size() + 2);
  CHECK(scratch.Names() == Names{"model.onnx"});
}

TEST_CASE("an input that changes meanwhile gives no output", "[proto]") {
  const ScratchDirectory scratch;
  const std::string model = scratch.Write("model.onnx", ModelBytes("w.bin"));
  scratch.Write("w.bin", "data");
  const auto file = OpenAndImport(model);
  const Rope rope = Output(*file);
  SECTION("the model grows") {
    scratch.Write("model.onnx", ModelBytes("w.bin") + "\x78\x01");
  }
  SECTION("the model shrinks") { fs::resize_file(model, 3); }
  SECTION("the data are replaced") {
    scratch.Write("new.bin", "data");
    fs::rename(scratch / "new.bin", scratch / "w.bin");
  }
  const absl::Status status = WriteModel(*file, rope, scratch / "out.onnx", {});
  CHECK(status.code() != absl::StatusCode::kOk);
  CHECK_FALSE(scratch.Exists("out.onnx"));
}

TEST_CASE("an output has a folder, unless it is a pipe, device or descriptor",
          "[proto]") {
  const ScratchDirectory scratch;
  REQUIRE(::mkfifo((scratch / "fifo").c_str(), 0600) == 0);
  for (const std::string& direct :
       {std::string("-"), std::string("/dev/null"), std::string("/dev/stdout"),
        scratch / "fifo"})
    CHECK(FolderOf(direct).value() == std::nullopt);
  CHECK(FolderOf("out.onnx").value() == ".");
  CHECK(FolderOf(scratch / "out.onnx").value() == scratch.path().string());
  fs::create_directory(scratch / "real");
  fs::create_symlink("real/out.onnx", scratch / "link.onnx");
  CHECK(FolderOf(scratch / "link.onnx").value() == scratch / "real");
}

TEST_CASE("temporary files have no name, or one that is removed", "[proto]") {
  const auto naming = GENERATE(TemporaryFile::Naming::kUnnamed,
                               TemporaryFile::Naming::kDotName);
  const ScratchDirectory scratch;
  {
    auto file = TemporaryFile::Create(scratch.path().string(), naming);
    REQUIRE(file.ok());
    CHECK(scratch.Names().size() ==
          (naming == TemporaryFile::Naming::kDotName ? 1u : 0u));
  }
  CHECK(scratch.Names().empty());
  for (const bool replace : {false, true}) {
    auto file = TemporaryFile::Create(scratch.path().string(), naming);
    REQUIRE(file.ok());
    REQUIRE(WriteFully(file->fd(), replace ? "new" : "old", 3, 0) == 0);
    CHECK(file->Publish(scratch / "out", replace).ok());
  }
  CHECK(scratch.Read("out") == "new");
  auto file = TemporaryFile::Create(scratch.path().string(), naming);
  REQUIRE(file.ok());
  CHECK(file->Publish(scratch / "out", false).code() ==
        absl::StatusCode::kFailedPrecondition);
  file = TemporaryFile{};
  CHECK(scratch.Names() == Names{"out"});
  CHECK(scratch.Read("out") == "new");
}

TEST_CASE("a signal that ends the process removes its temporary files",
          "[proto]") {
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP);
  const ScratchDirectory scratch;
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(signal, SIG_DFL);
    auto file = TemporaryFile::Create(scratch.path().string(),
                                      TemporaryFile::Naming::kDotName);
    ::raise(signal);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == signal);
  CHECK(scratch.Names().empty());
}

TEST_CASE("ranges are copied whole at any offset", "[proto]") {
  const ScratchDirectory scratch;
  std::string bytes(300'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  const FileDescriptor in(::open(scratch.Write("in", bytes).c_str(), O_RDONLY));
  for (const auto& [from, to] :
       {std::pair(0, 0), {5, 5}, {4096, 0}, {5, 4101}, {1, 2}}) {
    INFO(from << " " << to);
    const FileDescriptor out(
        ::open((scratch / "out").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600));
    RangeCopier copier(out.get());
    const uint64_t length = bytes.size() - 5000;
    REQUIRE(copier.Copy(in.get(), from, length, to) == 0);
    CHECK(scratch.Read("out").substr(to) == bytes.substr(from, length));
    CHECK(copier.Copy(in.get(), from, bytes.size() + 1, to) == ENODATA);
  }
}

}  // namespace
}  // namespace addnorm::proto
