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

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/file_descriptor.h"
#include "proto/removal_guard.h"

namespace addnorm::proto {

class TemporaryFile {
 public:
  enum class Naming { kUnnamed, kDotName };

  // In the directory of the target, so that the two are on one file system.
  static absl::StatusOr<TemporaryFile> Create(const std::string& directory,
                                              Naming naming = Naming::kUnnamed);

  int fd() const { return fd_.get(); }

  // Hears that an existing target was replaced, before anything else can fail;
  // it must not allocate.
  using OnReplaced = std::function<void()>;

  // Synchronises the file and gives it its name. FailedPrecondition if a file
  // of that name exists and is not to be replaced. If what follows fails, a new
  // target is gone again; a replaced one stays replaced.
  absl::Status Publish(const std::string& target, bool replace,
                       const OnReplaced& on_replaced = {});

  // The same, replacing nothing; the target goes with the guard.
  absl::StatusOr<RemovalGuard> PublishGuarded(const std::string& target);

 private:
  absl::Status Appear(const std::string& target, bool replace,
                      const OnReplaced& on_replaced);
  bool AppearNew(const std::string& target);
  bool Replace(const std::string& target, const OnReplaced& on_replaced);
  bool Link(const std::string& name);

  std::string directory_;
  std::string name_;  // its dot-name, if it has one
  FileDescriptor fd_;
  RemovalGuard guard_;  // of its name or, from then on, of a new target
};

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_TEMPORARY_FILE_H_
