// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/copy_range.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "proto/file_descriptor.h"

namespace addnorm::proto {
namespace {

// Fits into a second-level cache; 1 MiB took up to twice the system time.
constexpr size_t kBufferSize = 256 * 1024;
constexpr uint64_t kWriteBehind = 32 << 20;
constexpr uint64_t kBlock = 4096;
constexpr uint64_t kMinShared =
    16 * kBlock;  // below, a copy costs less than the call

}  // namespace

int Allocate(int fd, uint64_t size) {
  if (size == 0 || ::fallocate(fd, 0, 0, static_cast<off_t>(size)) == 0)
    return 0;
  return errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR ? 0 : errno;
}

int RangeCopier::CopyBytes(int in, uint64_t in_offset, uint64_t length,
                           int64_t out_offset) {
  if (buffer_ == nullptr) buffer_.reset(new char[kBufferSize]);
  while (length > 0) {
    const size_t chunk = std::min<uint64_t>(length, kBufferSize);
    const int64_t n = ReadFully(in, buffer_.get(), chunk, in_offset);
    if (n < 0) return errno;
    if (static_cast<size_t>(n) < chunk) return ENODATA;
    if (const int error = WriteFully(out_, buffer_.get(), chunk, out_offset))
      return error;
    Report(chunk);
    in_offset += chunk;
    length -= chunk;
    if (out_offset < 0) continue;
    out_offset += static_cast<int64_t>(chunk);
    StartWriting(static_cast<uint64_t>(out_offset));
  }
  return 0;
}

// Lets the disk begin while the rest is copied; the last fsync then has less to
// wait for. Only a matter of time, so that errors do not count.
void RangeCopier::StartWriting(uint64_t end) {
  if (end < started_ || end - started_ < kWriteBehind) return;
  ::sync_file_range(out_, static_cast<off_t>(started_),
                    static_cast<off_t>(end - started_), SYNC_FILE_RANGE_WRITE);
  started_ = end;
}

// How many bytes were shared: whole blocks or nothing.
uint64_t RangeCopier::Share(int in, uint64_t in_offset, uint64_t length,
                            uint64_t out_offset) {
  struct file_clone_range range {};
  range.src_fd = in;
  range.src_offset = in_offset;
  range.src_length = length / kBlock * kBlock;
  range.dest_offset = out_offset;
  can_share_ = ::ioctl(out_, FICLONERANGE, &range) == 0;
  if (!can_share_) return 0;
  Report(range.src_length);
  return range.src_length;
}

int RangeCopier::CopyWithHoles(int in, uint64_t size) {
  if (::ftruncate(out_, static_cast<off_t>(size)) != 0) return errno;
  const auto seek = [&](uint64_t from, int what) {
    const off_t at = ::lseek(in, static_cast<off_t>(from), what);
    if (at >= 0) return std::min(static_cast<uint64_t>(at), size);
    // ENXIO: nothing but a hole. Else the file system cannot tell.
    return errno == ENXIO || what == SEEK_HOLE ? size : from;
  };
  for (uint64_t end = 0; end < size;) {
    const uint64_t begin = seek(end, SEEK_DATA);
    Report(begin - end);
    end = begin < size ? seek(begin, SEEK_HOLE) : size;
    if (const int error =
            Copy(in, begin, end - begin, static_cast<int64_t>(begin)))
      return error;
  }
  return 0;
}

int RangeCopier::Copy(int in, uint64_t in_offset, uint64_t length,
                      int64_t out_offset) {
  const bool in_phase =
      out_offset >= 0 &&
      in_offset % kBlock == static_cast<uint64_t>(out_offset) % kBlock;
  if (!can_share_ || !in_phase || length < kMinShared) {
    return CopyBytes(in, in_offset, length, out_offset);
  }
  const uint64_t head = (kBlock - in_offset % kBlock) % kBlock;
  if (const int error = CopyBytes(in, in_offset, head, out_offset))
    return error;
  const uint64_t done = head + Share(in, in_offset + head, length - head,
                                     static_cast<uint64_t>(out_offset) + head);
  return CopyBytes(in, in_offset + done, length - done,
                   out_offset + static_cast<int64_t>(done));
}

}  // namespace addnorm::proto
