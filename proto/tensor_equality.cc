// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/tensor_equality.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "onnx/onnx_pb.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/external_elements.h"
#include "proto/file_descriptor.h"
#include "proto/tensor_reader.h"

namespace addnorm::proto {
namespace {

constexpr uint64_t kBlock = uint64_t{1} << 20;

// A tensor's bytes from front to back: in memory, or pieces of one file.
class ByteSource {
 public:
  static absl::StatusOr<ByteSource> Of(const ModelFile& file,
                                       const ir::Tensor& tensor);
  // All of the file, or of one of its data files.
  static ByteSource Of(const ModelFile& file);
  static absl::StatusOr<ByteSource> Of(const ModelFile& file,
                                       const DataFile& data);

  uint64_t size() const { return size_; }
  std::optional<std::string> Place() const;
  // The next bytes, at most `length` of them.
  absl::Status Read(uint64_t length, std::string& out);

 private:
  absl::Status OpenExternal(const ModelFile& file, const ir::Tensor& tensor,
                            const ir::ExternalElements& elements);
  void SetRanges(int fd, std::string name, std::vector<ir::ByteRange> ranges);

  std::string memory_;
  FileDescriptor own_;
  int fd_ = -1;
  std::string name_;
  std::vector<ir::ByteRange> ranges_;
  size_t range_ = 0;
  uint64_t at_ = 0;  // in the range, or in memory
  uint64_t size_ = 0;
};

void ByteSource::SetRanges(int fd, std::string name,
                           std::vector<ir::ByteRange> ranges) {
  fd_ = fd;
  name_ = std::move(name);
  ranges_ = std::move(ranges);
  for (const ir::ByteRange& range : ranges_) size_ += range.length;
}

absl::Status ByteSource::OpenExternal(const ModelFile& file,
                                      const ir::Tensor& tensor,
                                      const ir::ExternalElements& elements) {
  ASSIGN_OR_RETURN(OpenRegion data, OpenElements(file, tensor, elements));
  own_ = std::move(data.fd);
  SetRanges(own_.get(), data.region.file->path,
            {{data.region.offset, data.region.length}});
  return absl::OkStatus();
}

ByteSource ByteSource::Of(const ModelFile& file) {
  ByteSource source;
  source.SetRanges(file.fd(), file.name(), {{0, file.size()}});
  return source;
}

absl::StatusOr<ByteSource> ByteSource::Of(const ModelFile& file,
                                          const DataFile& data) {
  ByteSource source;
  ASSIGN_OR_RETURN(source.own_, file.external_data().OpenFile(data));
  source.SetRanges(source.own_.get(), data.path,
                   {{0, static_cast<uint64_t>(data.info.st_size)}});
  return source;
}

absl::StatusOr<ByteSource> ByteSource::Of(const ModelFile& file,
                                          const ir::Tensor& tensor) {
  ByteSource source;
  const auto* in_file = std::get_if<ir::FileElements>(&tensor.elements);
  const auto* opaque = std::get_if<ir::OpaqueElements>(&tensor.elements);
  if (const auto* external =
          std::get_if<ir::ExternalElements>(&tensor.elements)) {
    RETURN_IF_ERROR(source.OpenExternal(file, tensor, *external));
  } else if (in_file != nullptr &&
             in_file->field == onnx::TensorProto::kRawDataFieldNumber) {
    source.SetRanges(file.fd(), file.name(), in_file->ranges);
  } else if (opaque != nullptr && !opaque->ranges.empty()) {
    source.SetRanges(file.fd(), file.name(), opaque->ranges);
  } else if (opaque != nullptr && opaque->encoded) {
    source.memory_ = *opaque->encoded;
    source.size_ = source.memory_.size();
  } else {
    // Elements in other fields are encoded; so is what they are not.
    const std::shared_ptr<const ModelFile> borrowed(
        std::shared_ptr<const ModelFile>(), &file);
    ASSIGN_OR_RETURN(source.memory_, MakeTensorReader(borrowed)->Read(tensor));
    source.size_ = source.memory_.size();
  }
  return source;
}

std::optional<std::string> ByteSource::Place() const {
  struct stat info {};
  if (ranges_.size() != 1 || fstat(fd_, &info) != 0) return std::nullopt;
  return fmt::format("{}:{}:{}+{}", info.st_dev, info.st_ino, ranges_[0].offset,
                     ranges_[0].length);
}

absl::Status ByteSource::Read(uint64_t length, std::string& out) {
  out.clear();
  if (fd_ < 0) {
    out = memory_.substr(at_, length);
    at_ += out.size();
    return absl::OkStatus();
  }
  while (out.size() < length && range_ < ranges_.size()) {
    const ir::ByteRange& range = ranges_[range_];
    const uint64_t piece = std::min(length - out.size(), range.length - at_);
    const size_t begin = out.size();
    out.resize(begin + piece);
    const int64_t n =
        ReadFully(fd_, out.data() + begin, piece, range.offset + at_);
    if (n < 0) return ErrnoError(errno, name_);
    if (static_cast<uint64_t>(n) < piece)
      return absl::UnavailableError(fmt::format("{}: was truncated", name_));
    at_ += piece;
    if (at_ < range.length) continue;
    at_ = 0;
    ++range_;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> SameBytes(ByteSource x, ByteSource y) {
  if (x.size() != y.size()) return false;
  const std::optional<std::string> place = x.Place();
  if (place && place == y.Place()) return true;
  std::string block_x, block_y;
  for (uint64_t done = 0; done < x.size(); done += kBlock) {
    RETURN_IF_ERROR(x.Read(kBlock, block_x));
    RETURN_IF_ERROR(y.Read(kBlock, block_y));
    if (block_x != block_y) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::optional<std::string>> PlaceOfElements(
    const ModelFile& file, const ir::Tensor& tensor) {
  if (tensor.inline_bytes() != nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(const ByteSource source, ByteSource::Of(file, tensor));
  return source.Place();
}

absl::StatusOr<bool> ElementsEqual(const ModelFile& file_a, const ir::Tensor& a,
                                   const ModelFile& file_b,
                                   const ir::Tensor& b) {
  ASSIGN_OR_RETURN(ByteSource x, ByteSource::Of(file_a, a));
  ASSIGN_OR_RETURN(ByteSource y, ByteSource::Of(file_b, b));
  return SameBytes(std::move(x), std::move(y));
}

absl::StatusOr<bool> FilesEqual(const ModelFile& a, const ModelFile& b) {
  ASSIGN_OR_RETURN(const bool same,
                   SameBytes(ByteSource::Of(a), ByteSource::Of(b)));
  if (!same) return false;
  for (const auto& [location, file_a] : a.external_data().files()) {
    const auto& files_b = b.external_data().files();
    const auto file_b = files_b.find(location);
    if (file_b == files_b.end()) return false;
    ASSIGN_OR_RETURN(ByteSource x, ByteSource::Of(a, file_a));
    ASSIGN_OR_RETURN(ByteSource y, ByteSource::Of(b, file_b->second));
    ASSIGN_OR_RETURN(const bool same_data,
                     SameBytes(std::move(x), std::move(y)));
    if (!same_data) return false;
  }
  return true;
}

absl::StatusOr<uint64_t> DigestOfElements(const ModelFile& file,
                                          const ir::Tensor& tensor) {
  ASSIGN_OR_RETURN(ByteSource source, ByteSource::Of(file, tensor));
  uint64_t digest = source.size();
  std::string block;
  for (uint64_t done = 0; done < source.size(); done += kBlock) {
    RETURN_IF_ERROR(source.Read(kBlock, block));
    digest = absl::HashOf(digest, std::string_view(block));
  }
  return digest;
}

}  // namespace addnorm::proto
