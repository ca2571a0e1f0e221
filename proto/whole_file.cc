// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/whole_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/model_file.h"
#include "proto/temporary_file.h"

namespace addnorm::proto {

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  ASSIGN_OR_RETURN(const Input input, OpenInput(path));
  struct stat facts {};
  if (::fstat(input.fd.get(), &facts) != 0) return ErrnoError(errno, path);
  if (!S_ISREG(facts.st_mode)) {
    return absl::FailedPreconditionError(
        fmt::format("{}: is no regular file", path));
  }
  std::string bytes(static_cast<size_t>(facts.st_size), '\0');
  const int64_t n = ReadFully(input.fd.get(), bytes.data(), bytes.size(), 0);
  if (n < 0) return ErrnoError(errno, path);
  bytes.resize(static_cast<size_t>(n));
  return bytes;
}

namespace {

absl::StatusOr<TemporaryFile> Write(const std::string& path,
                                    std::string_view bytes) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  ASSIGN_OR_RETURN(TemporaryFile file,
                   TemporaryFile::Create(folder.empty() ? "." : folder));
  if (const int error =
          WriteFully(file.fd(), bytes.data(), bytes.size(), /*offset=*/0))
    return ErrnoError(error, path);
  return file;
}

}  // namespace

absl::Status WriteWholeFile(const std::string& path, std::string_view bytes,
                            bool replace) {
  ASSIGN_OR_RETURN(TemporaryFile file, Write(path, bytes));
  return file.Publish(path, replace);
}

absl::Status WriteNewFile(const std::string& path, std::string_view bytes,
                          MadePaths& made) {
  ASSIGN_OR_RETURN(TemporaryFile file, Write(path, bytes));
  ASSIGN_OR_RETURN(RemovalGuard guard, file.PublishGuarded(path));
  made.Add(std::move(guard));
  return absl::OkStatus();
}

}  // namespace addnorm::proto
