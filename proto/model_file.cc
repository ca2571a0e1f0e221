// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/model_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <utility>

#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/external_data.h"
#include "proto/file_kind.h"
#include "proto/wire.h"

namespace addnorm::proto {
namespace {

constexpr uint64_t kMaxSize = std::numeric_limits<int32_t>::max();

absl::Status CheckIsRegular(mode_t mode, const std::string& name) {
  if (S_ISREG(mode)) return absl::OkStatus();
  if (S_ISDIR(mode)) {
    return absl::NotFoundError(fmt::format(
        "{}: is a directory\nhint: give the .onnx file in it", name));
  }
  return absl::NotFoundError(fmt::format(
      "{}: is not a regular file\nhint: '-' reads a model from standard input",
      name));
}

absl::StatusOr<FileDescriptor> InMemory(const std::string& name) {
  FileDescriptor fd(::memfd_create("model", MFD_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, name);
  return fd;
}

// Copies standard input, which cannot be read twice.
absl::StatusOr<FileDescriptor> Buffered(int from, const std::string& name) {
  ASSIGN_OR_RETURN(FileDescriptor memory, InMemory(name));
  std::array<char, 64 * 1024> buffer;
  uint64_t size = 0;
  while (size <= kMaxSize) {
    const ssize_t n = ::read(from, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, name);
    if (n == 0) break;
    const int error =
        WriteFully(memory.get(), buffer.data(), static_cast<size_t>(n), -1);
    if (error != 0) return ErrnoError(error, name);
    size += static_cast<uint64_t>(n);
  }
  if (size == 0) {
    return InvalidModel(
        "{}: is empty, not an ONNX model\n"
        "hint: the command before the pipe wrote nothing",
        name);
  }
  return memory;
}

// Where a path went wrong: often a folder higher up, or where it starts.
std::string WhereItEnds(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_symlink(path, error))
    return "it is a link, and what it stands for is not there";
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  const std::string folder = full.parent_path().string();
  return std::filesystem::is_directory(folder, error)
             ? fmt::format("it was looked for in '{}'", folder)
             : fmt::format("there is no folder '{}'", folder);
}

absl::Status CannotOpen(int error, const std::string& path) {
  const absl::Status status = ErrnoError(error, path);
  return absl::IsNotFound(status) ? WithHint(status, WhereItEnds(path))
                                  : status;
}

bool SameContent(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

ModelFile::ModelFile(int fd, std::string name, std::string path)
    : fd_(fd), name_(std::move(name)), path_(std::move(path)) {}

ModelFile::~ModelFile() { ::close(fd_); }

absl::StatusOr<Input> OpenInput(const std::string& path) {
  if (path == "-") {
    Input input{.fd = {}, .name = "<stdin>", .path = ""};
    ASSIGN_OR_RETURN(input.fd, Buffered(STDIN_FILENO, input.name));
    return input;
  }
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  FileDescriptor fd(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return CannotOpen(errno, path);
  return Input{.fd = std::move(fd), .name = path, .path = path};
}

absl::StatusOr<std::shared_ptr<ModelFile>> ModelFile::Open(
    const std::string& path) {
  ASSIGN_OR_RETURN(const Input input, OpenInput(path));
  return FromDescriptor(input.fd.get(), input.name, input.path);
}

absl::StatusOr<std::shared_ptr<ModelFile>> ModelFile::FromBytes(
    std::string name, std::string_view bytes, std::string path) {
  ASSIGN_OR_RETURN(FileDescriptor memory, InMemory(name));
  const int error = WriteFully(memory.get(), bytes.data(), bytes.size(), -1);
  if (error != 0) return ErrnoError(error, name);
  return FromDescriptor(memory.get(), std::move(name), std::move(path));
}

absl::StatusOr<std::shared_ptr<ModelFile>> ModelFile::FromDescriptor(
    int fd, std::string name, std::string path) {
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return ErrnoError(errno, name);
  std::shared_ptr<ModelFile> file(
      new ModelFile(own, std::move(name), std::move(path)));
  if (::fstat(own, &file->opened_) != 0) return ErrnoError(errno, file->name_);
  RETURN_IF_ERROR(CheckIsRegular(file->opened_.st_mode, file->name_));
  file->size_ = static_cast<uint64_t>(file->opened_.st_size);
  if (file->size_ > kMaxSize) {
    RETURN_IF_ERROR(WithContext(CheckKind(own, file->size_), file->name_));
    return InvalidModel(
        "{}: has {} bytes, more than the 2 GiB that ONNX files can have\n"
        "hint: convert it to external data, e.g. with onnx.save(…, "
        "save_as_external_data=True)",
        file->name_, file->size_);
  }
  absl::StatusOr<Document> document = Document::Walk(own, file->size_);
  // First bytes are only looked at in what is no model, so that no model is
  // mistaken.
  if (!document.ok() || document->Children({&kRoot, 1}, Kind::kGraph).empty()) {
    RETURN_IF_ERROR(WithContext(CheckKind(own, file->size_), file->name_));
  }
  if (!document.ok() && IsDataFileName(file->path_)) {
    return InvalidModel(
        "{}: is a data file, by its name, not an ONNX model\n"
        "hint: give the .onnx file that it belongs to",
        file->name_);
  }
  if (!document.ok()) return WithContext(document.status(), file->name_);
  file->document_ = std::make_unique<Document>(*std::move(document));
  file->external_data_ = std::make_unique<ExternalData>(file->path_);
  return file;
}

absl::Status ModelFile::Read(uint64_t offset, uint64_t length,
                             char* out) const {
  const int64_t n = ReadFully(fd_, out, length, offset);
  if (n < 0) return ErrnoError(errno, name_);
  if (static_cast<uint64_t>(n) < length) {
    return absl::UnavailableError(
        fmt::format("{}: was truncated while it was read", name_));
  }
  return absl::OkStatus();
}

bool ModelFile::IsSameFile(const struct stat& other) const {
  return other.st_dev == opened_.st_dev && other.st_ino == opened_.st_ino;
}

absl::Status ModelFile::CheckUnchanged() const {
  struct stat now {};
  if (::fstat(fd_, &now) != 0) return ErrnoError(errno, name_);
  if (!SameContent(now, opened_)) {
    return absl::UnavailableError(
        fmt::format("{}: was changed while it was read\nhint: run again when "
                    "nothing writes to it",
                    name_));
  }
  return absl::OkStatus();
}

}  // namespace addnorm::proto
