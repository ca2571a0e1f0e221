// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/tensor_reader.h"

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "onnx/onnx_pb.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/external_elements.h"
#include "proto/tensor_encoding.h"

namespace addnorm::proto {
namespace {

using onnx::TensorProto;

class FileReader : public ir::TensorReader {
 public:
  explicit FileReader(std::shared_ptr<const ModelFile> file)
      : file_(std::move(file)) {}

  absl::StatusOr<std::string> Read(const ir::Tensor& tensor) override {
    absl::StatusOr<std::string> bytes = ReadElements(tensor);
    if (bytes.ok()) return bytes;
    return WithContext(WithTensorName(bytes.status(), tensor.name),
                       file_->name());
  }

 private:
  absl::StatusOr<std::string> ReadElements(const ir::Tensor& tensor) {
    if (const auto* held = std::get_if<ir::InlineElements>(&tensor.elements))
      return held->bytes;
    ASSIGN_OR_RETURN(const int64_t count, ElementCount(tensor));
    const std::optional<uint64_t> size = ByteSize(tensor.type, count);
    if (const auto* elements =
            std::get_if<ir::FileElements>(&tensor.elements)) {
      return elements->field == TensorProto::kRawDataFieldNumber
                 ? ReadRanges(*elements)
                 : Decode(tensor, *elements, size);
    }
    if (const auto* elements =
            std::get_if<ir::ExternalElements>(&tensor.elements)) {
      return ReadExternal(tensor, *elements);
    }
    return absl::UnimplementedError(fmt::format(
        "elements of type {} cannot be read", ir::DataTypeName(tensor.type)));
  }

  absl::StatusOr<std::string> ReadRanges(const ir::FileElements& elements) {
    std::string bytes;
    for (const ir::ByteRange& range : elements.ranges) {
      const size_t at = bytes.size();
      bytes.resize(at + range.length);
      RETURN_IF_ERROR(
          file_->Read(range.offset, range.length, bytes.data() + at));
    }
    return bytes;
  }

  // The runs are a serialised tensor that has nothing but this field.
  absl::StatusOr<std::string> Decode(const ir::Tensor& tensor,
                                     const ir::FileElements& elements,
                                     std::optional<uint64_t> size) {
    TensorProto proto;
    ASSIGN_OR_RETURN(const std::string runs, ReadRanges(elements));
    if (!proto.ParseFromString(runs))
      return InvalidModel("has elements that are no valid protobuf");
    std::optional<std::string> bytes = DecodeTyped(tensor.type, proto);
    if (!bytes)
      return absl::UnimplementedError("elements of its type cannot be read");
    if (size && bytes->size() != *size) {
      return InvalidModel("has {} bytes of elements, expected {}",
                          bytes->size(), *size);
    }
    return *std::move(bytes);
  }

  absl::StatusOr<std::string> ReadExternal(
      const ir::Tensor& tensor, const ir::ExternalElements& elements) {
    ASSIGN_OR_RETURN(const OpenRegion data,
                     OpenElements(*file_, tensor, elements));
    const DataRegion& region = data.region;
    std::string bytes(region.length, '\0');
    const int64_t n =
        ReadFully(data.fd.get(), bytes.data(), bytes.size(), region.offset);
    if (n < 0) return ErrnoError(errno, region.file->path);
    if (static_cast<size_t>(n) < bytes.size()) {
      return absl::UnavailableError(
          fmt::format("{}: was truncated", region.file->path));
    }
    return bytes;
  }

  std::shared_ptr<const ModelFile> file_;
};

}  // namespace

std::unique_ptr<ir::TensorReader> MakeTensorReader(
    std::shared_ptr<const ModelFile> file) {
  return std::make_unique<FileReader>(std::move(file));
}

}  // namespace addnorm::proto
