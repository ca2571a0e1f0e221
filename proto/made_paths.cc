// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/made_paths.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "passes/ir/status_macros.h"
#include "proto/errors.h"

namespace addnorm::proto {

MadePaths::~MadePaths() {
  // What is in a folder was made after it.
  while (!made_.empty()) made_.pop_back();
}

absl::Status MadePaths::MakeFolder(const std::string& path) {
  RemovalGuard guard(path);
  if (guard.Make([&] { return ::mkdir(path.c_str(), 0777) == 0; })) {
    Add(std::move(guard));
  } else if (errno != EEXIST) {
    return ErrnoError(errno, path);
  }
  return absl::OkStatus();
}

absl::Status MadePaths::MakeFolders(const std::string& path) {
  std::filesystem::path prefix;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    prefix /= part;
    // Without a name it is the root, or the end of "folder/".
    if (!prefix.has_filename()) continue;
    RETURN_IF_ERROR(MakeFolder(prefix.string()));
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return ErrnoError(errno, path);
  return S_ISDIR(info.st_mode) ? absl::OkStatus() : ErrnoError(ENOTDIR, path);
}

void MadePaths::Keep() noexcept {
  // At once: an output is complete or is not there.
  const SignalsBlocked blocked;
  for (RemovalGuard& made : made_) made.Release();
}

}  // namespace addnorm::proto
