// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A protobuf input stream over pread whose Skip does not read. For .cc files of
// this folder only: it includes protobuf.
//
//   PreadStream stream(fd, size);
//   google::protobuf::io::CodedInputStream in(&stream);
#ifndef ADDNORM_PROTO_PREAD_STREAM_H_
#define ADDNORM_PROTO_PREAD_STREAM_H_

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>

#include "google/protobuf/io/zero_copy_stream.h"
#include "proto/file_descriptor.h"

namespace addnorm::proto {

class PreadStream : public google::protobuf::io::ZeroCopyInputStream {
 public:
  // Reads bytes [begin, end) of the file.
  PreadStream(int fd, uint64_t end, uint64_t begin = 0)
      : fd_(fd),
        begin_(begin),
        next_(begin),
        end_(end),
        buffer_(new char[kBufferSize]) {}

  bool Next(const void** data, int* size) override {
    const auto length = std::min<uint64_t>(kBufferSize, end_ - next_);
    if (length == 0 || error_ != 0) return false;
    const int64_t n = ReadFully(fd_, buffer_.get(), length, next_);
    if (n < 0) error_ = errno;
    if (n <= 0) return false;
    next_ += static_cast<uint64_t>(n);
    *data = buffer_.get();
    *size = static_cast<int>(n);
    return true;
  }

  void BackUp(int count) override { next_ -= static_cast<uint64_t>(count); }

  bool Skip(int count) override {
    const bool inside = static_cast<uint64_t>(count) <= end_ - next_;
    next_ = inside ? next_ + static_cast<uint64_t>(count) : end_;
    return inside;
  }

  int64_t ByteCount() const override {
    return static_cast<int64_t>(next_ - begin_);
  }

  // The errno value of the read that failed, or 0.
  int error() const { return error_; }

 private:
  // Small enough to waste little on a file of many medium payloads.
  static constexpr size_t kBufferSize = 32 * 1024;

  int fd_;
  uint64_t begin_;
  uint64_t next_;
  uint64_t end_;
  int error_ = 0;
  std::unique_ptr<char[]> buffer_;
};

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_PREAD_STREAM_H_
