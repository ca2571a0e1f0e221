// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A file that appears under its name only when it is complete.
//
// It has no name while it is written (O_TMPFILE), so nothing is left of it
// whatever ends the process. Where the file system cannot do that it has a
// dot-name, which is removed on failure and by INT, TERM and HUP. It does not
// decide whether a target may be replaced; its user does.
//
//   ASSIGN_OR_RETURN(TemporaryFile file, TemporaryFile::Create("dir"));
//   ... write to file.fd() ...
//   RETURN_IF_ERROR(file.Publish("dir/out.onnx", /*replace=*/false));
#ifndef ADDNORM_PROTO_TEMPORARY_FILE_H_
#define ADDNORM_PROTO_TEMPORARY_FILE_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/file_descriptor.h"

namespace addnorm::proto {

// Removes a file, or a directory that is empty by then, when it goes out of
// scope, or when INT, TERM or HUP ends the process.
class RemovalGuard {
 public:
  RemovalGuard() = default;
  explicit RemovalGuard(const std::string& path);
  RemovalGuard(RemovalGuard&& other) noexcept
      : entry_(std::exchange(other.entry_, nullptr)) {}
  RemovalGuard& operator=(RemovalGuard&& other) noexcept;
  ~RemovalGuard() { Remove(); }

  // It stays.
  void Release();
  void Remove();

  struct Entry;

 private:
  Entry* entry_ = nullptr;
};

class TemporaryFile {
 public:
  enum class Naming { kUnnamed, kDotName };

  // In the directory of the target, so that the two are on one file system.
  static absl::StatusOr<TemporaryFile> Create(const std::string& directory,
                                              Naming naming = Naming::kUnnamed);

  int fd() const { return fd_.get(); }

  // Synchronises the file and gives it its name. FailedPrecondition if a file
  // of that name exists and is not to be replaced.
  absl::Status Publish(const std::string& target, bool replace);

 private:
  absl::Status Link(const std::string& target, bool replace);

  std::string directory_;
  std::string name_;  // its dot-name, if it has one
  FileDescriptor fd_;
  RemovalGuard guard_;
};

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_TEMPORARY_FILE_H_
