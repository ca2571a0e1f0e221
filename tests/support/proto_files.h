// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Model files for tests: bytes field by field, and a directory to put them in.
//
//   tests::ScratchDirectory scratch;
//   scratch.Write("model.onnx", tests::Field(7, graph));
#ifndef ADDNORM_TESTS_SUPPORT_PROTO_FILES_H_
#define ADDNORM_TESTS_SUPPORT_PROTO_FILES_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace addnorm::tests {

// A directory of its own, removed with all that is in it.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name =
        (std::filesystem::temp_directory_path() / "addnorm-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(std::string_view name) const {
    return (path_ / name).string();
  }

  std::string Write(std::string_view name, std::string_view bytes) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file.string();
  }

  std::string Read(std::string_view name) const {
    std::ifstream in(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  bool Exists(std::string_view name) const {
    return std::filesystem::exists(
        std::filesystem::symlink_status(path_ / name));
  }

  // Names of all files and directories in it, relative and sorted.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(path_)) {
      names.push_back(std::filesystem::relative(entry.path(), path_).string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::filesystem::path path_;
};

inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// A length-delimited field, and a varint one.
inline std::string Field(uint64_t number, std::string_view value) {
  return Varint(number << 3 | 2) + Varint(value.size()) + std::string(value);
}
inline std::string NumberField(uint64_t number, uint64_t value) {
  return Varint(number << 3) + Varint(value);
}

inline std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

}  // namespace addnorm::tests

#endif  // ADDNORM_TESTS_SUPPORT_PROTO_FILES_H_
