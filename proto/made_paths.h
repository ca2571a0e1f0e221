// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Files and folders that appear together or not at all: what was made is
// removed again, unless Keep is called, as by a RemovalGuard each. What was
// there before is never touched.
//
//   MadePaths made;
//   RETURN_IF_ERROR(made.MakeFolders("out/data"));
//   RETURN_IF_ERROR(WriteNewFile("out/data/input_0.pb", bytes, made));
//   ...
//   made.Keep();
#ifndef ADDNORM_PROTO_MADE_PATHS_H_
#define ADDNORM_PROTO_MADE_PATHS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/removal_guard.h"

namespace addnorm::proto {

class MadePaths {
 public:
  MadePaths() = default;
  MadePaths(const MadePaths&) = delete;
  MadePaths& operator=(const MadePaths&) = delete;
  ~MadePaths();

  // One folder, if nothing is there.
  absl::Status MakeFolder(const std::string& path);
  // The folder and those above it that are missing.
  absl::Status MakeFolders(const std::string& path);
  void Add(RemovalGuard made) { made_.push_back(std::move(made)); }
  // All of it stays. Allocates nothing.
  void Keep() noexcept;

 private:
  std::vector<RemovalGuard> made_;
};

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_MADE_PATHS_H_
