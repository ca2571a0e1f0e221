// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "proto/file_descriptor.h"
#include "proto/made_paths.h"
#include "proto/removal_guard.h"
#include "proto/whole_file.h"
#include "tests/support/catch.h"
#include "tests/support/proto_files.h"

namespace addnorm::proto {
namespace {

using tests::Message;
using tests::ScratchDirectory;

using Names = std::vector<std::string>;

bool MakeFile(const std::string& path) {
  return FileDescriptor(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600))
      .valid();
}

TEST_CASE("a guard removes what it made, unless it is released", "[proto]") {
  const ScratchDirectory scratch;
  for (const char* name : {"gone", "kept"}) {
    RemovalGuard guard(scratch / name);
    REQUIRE(guard.Make([&] { return MakeFile(scratch / name); }));
    if (name == std::string("kept")) guard.Release();
  }
  CHECK(scratch.Names() == Names{"kept"});
}

TEST_CASE("a guard leaves alone what it did not make", "[proto]") {
  const ScratchDirectory scratch;
  scratch.Write("theirs", "theirs");
  {
    RemovalGuard unused(scratch / "theirs");
    RemovalGuard guard(scratch / "theirs");
    CHECK_FALSE(guard.Make([&] { return MakeFile(scratch / "theirs"); }));
    CHECK(errno == EEXIST);
    RemoveGuarded();
  }
  CHECK(scratch.Read("theirs") == "theirs");
}

// How a child ends that does the work in a scratch directory.
template <typename Work>
int StatusOfChild(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

TEST_CASE("a signal between the making of a path and its guard removes it",
          "[proto]") {
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU);
  const ScratchDirectory scratch;
  const int status = StatusOfChild([&] {
    ::signal(signal, SIG_DFL);
    RemovalGuard guard(scratch / "file");
    guard.Make([&] {
      const bool made = MakeFile(scratch / "file");
      ::raise(signal);
      return made;
    });
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == signal);
  CHECK(scratch.Names().empty());
}

TEST_CASE("a signal removes folders and what was made in them", "[proto]") {
  const ScratchDirectory scratch;
  scratch.Write("old/theirs", "theirs");
  const int status = StatusOfChild([&] {
    ::signal(SIGTERM, SIG_DFL);
    MadePaths made;
    // Deeper than any fixed number of passes.
    const std::string folder = scratch / "old/1/2/3/4/5/6/7/8/9/10/11/12";
    if (!made.MakeFolders(folder).ok()) ::_exit(1);
    if (!WriteNewFile(folder + "/file", "bytes", made).ok()) ::_exit(2);
    if (!MakeFile(scratch / "old/1/theirs")) ::_exit(3);
    ::raise(SIGTERM);
  });
  CHECK(WIFSIGNALED(status));
  CHECK(scratch.Names() == Names{"old", "old/1", "old/1/theirs", "old/theirs"});
}

TEST_CASE("what was made together is kept or removed together", "[proto]") {
  const bool keeps = GENERATE(false, true);
  const ScratchDirectory scratch;
  {
    MadePaths made;
    REQUIRE(made.MakeFolders(scratch / "a/b/").ok());
    REQUIRE(WriteNewFile(scratch / "a/b/one", "1", made).ok());
    REQUIRE(WriteNewFile(scratch / "a/two", "2", made).ok());
    // What is there is an error, and stays.
    CHECK_THAT(Message(WriteNewFile(scratch / "a/two", "3", made)),
               ContainsSubstring("exists already"));
    CHECK_FALSE(made.MakeFolders(scratch / "a/two").ok());
    if (keeps) made.Keep();
  }
  CHECK(scratch.Names() ==
        (keeps ? Names{"a", "a/b", "a/b/one", "a/two"} : Names{}));
}

}  // namespace
}  // namespace addnorm::proto
