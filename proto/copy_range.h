// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Copying ranges between files: shared blocks where the file system has them
// (btrfs, XFS), else through a buffer, which is no slower than copy_file_range.
//
//   RangeCopier copier(out_fd);
//   int error = copier.Copy(in_fd, in_offset, length, out_offset);
#ifndef ADDNORM_PROTO_COPY_RANGE_H_
#define ADDNORM_PROTO_COPY_RANGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace addnorm::proto {

// Reserves the space, so that a full disk is noticed before the work; 0, or the
// errno value. A file system that cannot reserve is no error.
int Allocate(int fd, uint64_t size);

class RangeCopier {
 public:
  // `on_copied` hears of each part of a copy, in bytes.
  explicit RangeCopier(int out,
                       std::function<void(uint64_t bytes)> on_copied = {})
      : out_(out), on_copied_(std::move(on_copied)) {}

  // 0, or the errno value; ENODATA if the input ends early. An `out_offset` of
  // -1 writes at the output's own place (pipes).
  int Copy(int in, uint64_t in_offset, uint64_t length, int64_t out_offset);

  // The first `size` bytes of a file with holes to the beginning of an empty
  // one. Holes stay holes and cost nothing, but for the sizes of blocks.
  int CopyWithHoles(int in, uint64_t size);

 private:
  int CopyBytes(int in, uint64_t in_offset, uint64_t length,
                int64_t out_offset);
  uint64_t Share(int in, uint64_t in_offset, uint64_t length,
                 uint64_t out_offset);

  // Of the output, up to `end`.
  void StartWriting(uint64_t end);

  void Report(uint64_t bytes) const {
    if (on_copied_ && bytes > 0) on_copied_(bytes);
  }

  int out_;
  std::function<void(uint64_t bytes)> on_copied_;
  bool can_share_ = true;
  uint64_t started_ = 0;  // bytes of the output that go to the disk already
  std::unique_ptr<char[]> buffer_;
};

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_COPY_RANGE_H_
