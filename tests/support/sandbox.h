// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs of the program, each in a folder of its own, and models to give it.
//
//   const Sandbox box;
//   WriteModel(box / "m.onnx", kModel);
//   const Outcome run = box.Run("inspect m.onnx");
#ifndef ADDNORM_TESTS_SUPPORT_SANDBOX_H_
#define ADDNORM_TESTS_SUPPORT_SANDBOX_H_

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "proto/text.h"

namespace addnorm::tests {

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void WriteFile(const std::filesystem::path& path,
                      std::string_view bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// A temporary folder in which the program runs.
class Sandbox {
 public:
  Sandbox() {
    std::string name =
        (std::filesystem::temp_directory_path() / "addnorm-cli-XXXXXX")
            .string();
    if (mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("no temporary folder");
    root_ = name;
    folder_ = root_ / "work";
    std::filesystem::create_directory(folder_);
  }
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  ~Sandbox() { std::filesystem::remove_all(root_); }

  std::filesystem::path operator/(std::string_view name) const {
    return folder_ / name;
  }

  // `arguments` are words of a shell, so they may redirect.
  Outcome Run(const std::string& arguments) const {
    return Shell("$TOOL " + arguments);
  }

  // $TOOL is the program.
  Outcome Shell(const std::string& command) const {
    const std::filesystem::path out = root_ / "out";
    const std::filesystem::path err = root_ / "err";
    std::ostringstream line;
    line << "cd " << folder_
         << " && export TOOL=" << std::filesystem::path(ADDNORM_BIN) << " && { "
         << command << "; } </dev/null >" << out << " 2>" << err;
    const int status = std::system(line.str().c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(out),
            ReadFile(err)};
  }

 private:
  std::filesystem::path root_;
  std::filesystem::path folder_;
};

// One site whose sum is read again, one norm without an Add.
inline constexpr std::string_view kModel = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  main (float[2,8] a, float[2,8] b, float[8] w) => (float[2,8] y, float[2,8] z)
  <float eps = {1e-5}, float two = {2.0}>
  {
    [residual] s = Add(a, b)
    sq = Pow(s, two)
    ms = ReduceMean<axes = [-1], keepdims = 1>(sq)
    mse = Add(ms, eps)
    rms = Sqrt(mse)
    r = Reciprocal(rms)
    n = Mul(s, r)
    y = Mul(n, w)
    z = Relu(s)
  })";

inline constexpr std::string_view kNothingToFuse = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  main (float[2,8] a, float[2,8] b) => (float[2,8] s) { s = Add(a, b) })";

inline constexpr std::string_view kExternalWeight = R"(
  <ir_version: 8, opset_import: ["" : 17]>
  main (float[2,8] a) => (float[2,8] y)
  <float[8] w = ["location": "w.bin", "offset": "0", "length": "32"]>
  { y = Mul(a, w) })";

inline void WriteModel(const std::filesystem::path& path,
                       std::string_view text) {
  const auto bytes = proto::SerializeText(text);
  if (!bytes.ok()) throw std::runtime_error(bytes.status().ToString());
  WriteFile(path, *bytes);
}

}  // namespace addnorm::tests

#endif  // ADDNORM_TESTS_SUPPORT_SANDBOX_H_
