// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A model file, open for reading: its descriptor, its walk, its data files.
//
// Opening looks at the file's kind and first bytes, then walks its structure
// (proto/wire.h); tensors' payloads are not read. It is not a parsed model: see
// proto/import.h for that. The file is only ever read through pread on the one
// descriptor, so a rename over its path does not disturb it.
//
//   ASSIGN_OR_RETURN(std::shared_ptr<ModelFile> file,
//   ModelFile::Open("model.onnx")); ASSIGN_OR_RETURN(Imported imported,
//   Import(file));
#ifndef ADDNORM_PROTO_MODEL_FILE_H_
#define ADDNORM_PROTO_MODEL_FILE_H_

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/file_descriptor.h"

namespace addnorm::proto {

class Document;
class ExternalData;

class ModelFile {
 public:
  // Opens a regular file; "-" is standard input, read to its end.
  static absl::StatusOr<std::shared_ptr<ModelFile>> Open(
      const std::string& path);

  // A model in memory. Without a path it has no directory, so it cannot have
  // external data.
  static absl::StatusOr<std::shared_ptr<ModelFile>> FromBytes(
      std::string name, std::string_view bytes, std::string path = "");

  // A file that is open already (the descriptor is duplicated) and has, or will
  // have, the given path: its data files are looked for beside that.
  static absl::StatusOr<std::shared_ptr<ModelFile>> FromDescriptor(
      int fd, std::string name, std::string path);

  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;
  ~ModelFile();

  // What messages call it: the path, or a name such as "<stdin>".
  const std::string& name() const { return name_; }
  // Empty for a model without a place in the file system.
  const std::string& path() const { return path_; }
  int fd() const { return fd_; }
  uint64_t size() const { return size_; }

  const Document& document() const { return *document_; }
  ExternalData& external_data() const { return *external_data_; }

  absl::Status Read(uint64_t offset, uint64_t length, char* out) const;

  // True if `other` describes this very file (same device and inode).
  bool IsSameFile(const struct stat& other) const;
  // Unavailable if the file was written, truncated or grown since it was
  // opened.
  absl::Status CheckUnchanged() const;

 private:
  ModelFile(int fd, std::string name, std::string path);

  int fd_;
  std::string name_;
  std::string path_;
  uint64_t size_ = 0;
  struct stat opened_ {};
  std::unique_ptr<Document> document_;
  std::unique_ptr<ExternalData> external_data_;
};

// An input to be read through pread: the file, or for "-" standard input, which
// cannot be read twice, in memory.
struct Input {
  FileDescriptor fd;
  std::string name;  // for messages
  std::string path;  // "" for standard input
};
absl::StatusOr<Input> OpenInput(const std::string& path);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_MODEL_FILE_H_
