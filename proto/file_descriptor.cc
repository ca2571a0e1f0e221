// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/file_descriptor.h"

#include <algorithm>
#include <cerrno>

namespace addnorm::proto {

int FileDescriptor::Close() {
  if (fd_ < 0) return 0;
  // Linux closes the descriptor also where close reports EINTR.
  const bool failed = ::close(std::exchange(fd_, -1)) != 0;
  return failed && errno != EINTR ? errno : 0;
}

int64_t ReadFully(int fd, char* out, size_t length, uint64_t offset) {
  size_t done = 0;
  while (done < length) {
    const ssize_t n = ::pread(fd, out + done, length - done,
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return static_cast<int64_t>(done);
}

int WriteFully(int fd, const char* bytes, size_t length, int64_t offset) {
  for (size_t done = 0; done < length;) {
    const ssize_t n = offset < 0 ? ::write(fd, bytes + done, length - done)
                                 : ::pwrite(fd, bytes + done, length - done,
                                            offset + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return EIO;
    done += static_cast<size_t>(n);
  }
  return 0;
}

}  // namespace addnorm::proto
