// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/data_folder.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/fuzz/claims.h"

namespace addnorm::fuzz {
namespace {

namespace fs = std::filesystem;

struct Link {
  const char* path;
  const char* target;
};

constexpr Link kLinks[] = {
    {"model/in", "w.bin"},
    {"model/sub/up", "../w.bin"},
    {"model/round", "sub/../sub/up"},
    {"model/folder", "sub"},
    {"model/out", "../outside/secret"},
    {"model/way", "../outside"},
    {"model/loop", "loop"},
    {"model/magic", "/proc/self/fd/0"},
    {"snapshot/linked.onnx", "../model/m.onnx"},
    {"snapshot/w.bin", "../model/w.bin"},
    {"snapshot/out", "../outside/secret"},
    {"output/way", "../outside"},
};

void WriteFile(const fs::path& path, size_t size) {
  std::ofstream(path, std::ios::binary) << std::string(size, 's');
}

}  // namespace

DataFolder::DataFolder() {
  std::string name = fs::temp_directory_path() / "addnorm-fuzz-XXXXXX";
  Claim(::mkdtemp(name.data()) != nullptr, "a temporary folder can be made");
  root_ = name;
  for (const char* folder : {"model/sub", "snapshot", "outside", "output"})
    fs::create_directories(root_ / folder);
  WriteFile(root_ / "model/m.onnx", 16);
  WriteFile(root_ / "model/w.bin", 64);
  WriteFile(root_ / "model/empty", 0);
  WriteFile(root_ / "model/sub/v.bin", 4096);
  WriteFile(root_ / "outside/secret", 64);
  fs::create_hard_link(root_ / "model/w.bin", root_ / "model/hard");
  Claim(::mkfifo((root_ / "model/fifo").c_str(), 0600) == 0, "mkfifo");
  for (const Link& link : kLinks)
    fs::create_symlink(link.target, root_ / link.path);
  fs::create_symlink(root_ / "model/w.bin", root_ / "model/absolute_in");
  fs::create_symlink(root_ / "outside/secret", root_ / "model/absolute_out");
  for (const char* file : {"m.onnx", "w.bin", "empty", "sub/v.bin"}) {
    struct stat info {};
    Claim(::stat((root_ / "model" / file).c_str(), &info) == 0, "stat");
    inside_.insert(info.st_ino);
  }
  watch_ = proto::FileDescriptor(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  Claim(::inotify_add_watch(watch_.get(), (root_ / "outside").c_str(),
                            IN_ALL_EVENTS) >= 0,
        "the files outside can be watched");
}

DataFolder::~DataFolder() {
  std::error_code error;
  fs::remove_all(root_, error);
}

std::vector<std::string> DataFolder::models() const {
  return {root_ / "model/m.onnx", root_ / "snapshot/linked.onnx"};
}

bool DataFolder::IsInside(const struct stat& file) const {
  return inside_.contains(file.st_ino);
}

bool DataFolder::IsOutputClean() const {
  return std::distance(fs::directory_iterator(output()), {}) == 1;
}

bool DataFolder::WasLeft() const {
  std::array<char, 4096> events;
  return ::read(watch_.get(), events.data(), events.size()) > 0;
}

}  // namespace addnorm::fuzz
