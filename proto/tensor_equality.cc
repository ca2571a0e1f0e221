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
#include "proto/external_data.h"
#include "proto/file_descriptor.h"
#include "proto/tensor_encoding.h"
#include "proto/tensor_reader.h"

namespace addnorm::proto {
namespace {

constexpr uint64_t kBlock = uint64_t{1} << 20;

// A tensor's bytes from front to back: in memory, or pieces of one file.
class ByteSource {
 public:
  static absl::StatusOr<ByteSource> Of(const ModelFile& file,
                                       const ir::Tensor& tensor);

  uint64_t size() const { return size_; }
  std::optional<std::string> Place() const;
  // The next bytes, at most `length` of them.
  absl::Status Read(uint64_t length, std::string& out);

 private:
  absl::Status OpenExternal(const ModelFile& file, const ir::Tensor& tensor,
                            const ir::ExternalElements& elements);

  std::string memory_;
  FileDescriptor own_;
  int fd_ = -1;
  std::string name_;
  std::vector<ir::ByteRange> ranges_;
  size_t range_ = 0;
  uint64_t at_ = 0;  // in the range, or in memory
  uint64_t size_ = 0;
};

absl::Status ByteSource::OpenExternal(const ModelFile& file,
                                      const ir::Tensor& tensor,
                                      const ir::ExternalElements& elements) {
  const std::string offset = fmt::format("{}", elements.offset.value_or(0));
  DataEntries entries = {{"location", elements.location}, {"offset", offset}};
  std::string length;
  if (elements.length) {
    length = fmt::format("{}", *elements.length);
    entries.emplace_back("length", length);
  }
  ASSIGN_OR_RETURN(const int64_t count, ElementCount(tensor));
  ExternalData& data = file.external_data();
  ASSIGN_OR_RETURN(const DataRegion region,
                   data.Resolve(entries, ByteSize(tensor.type, count)));
  ASSIGN_OR_RETURN(own_, data.OpenFile(*region.file));
  fd_ = own_.get();
  name_ = region.file->path;
  ranges_ = {{region.offset, region.length}};
  return absl::OkStatus();
}

absl::StatusOr<ByteSource> ByteSource::Of(const ModelFile& file,
                                          const ir::Tensor& tensor) {
  ByteSource source;
  const auto* in_file = std::get_if<ir::FileElements>(&tensor.elements);
  if (const auto* external =
          std::get_if<ir::ExternalElements>(&tensor.elements)) {
    RETURN_IF_ERROR(source.OpenExternal(file, tensor, *external));
  } else if (in_file != nullptr &&
             in_file->field == onnx::TensorProto::kRawDataFieldNumber) {
    source.fd_ = file.fd();
    source.name_ = file.name();
    source.ranges_ = in_file->ranges;
  } else {
    // Elements in other fields are encoded; so is what they are not.
    const std::shared_ptr<const ModelFile> borrowed(
        std::shared_ptr<const ModelFile>(), &file);
    ASSIGN_OR_RETURN(source.memory_, MakeTensorReader(borrowed)->Read(tensor));
    source.size_ = source.memory_.size();
    return source;
  }
  for (const ir::ByteRange& range : source.ranges_)
    source.size_ += range.length;
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
