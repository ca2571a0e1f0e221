// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Owner of a file descriptor, and whole reads and writes on one.
//
// pread and pwrite may move fewer bytes than asked for and may be interrupted;
// these do not return before all is done or an error or the end stops them.
//
//   FileDescriptor fd(::open(path, O_RDONLY | O_CLOEXEC));
//   if (!fd.valid()) return ErrnoError(errno, path);
#ifndef ADDNORM_PROTO_FILE_DESCRIPTOR_H_
#define ADDNORM_PROTO_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace addnorm::proto {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~FileDescriptor() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

  // 0, or the errno value: a file system may report a failed write only here.
  int Close();

 private:
  int fd_ = -1;
};

// Bytes read: fewer than asked for only at the end of the file; -1 with errno
// set.
int64_t ReadFully(int fd, char* out, size_t length, uint64_t offset);

// 0, or the errno value. An offset of -1 writes at the descriptor's own place.
int WriteFully(int fd, const char* bytes, size_t length, int64_t offset);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_FILE_DESCRIPTOR_H_
