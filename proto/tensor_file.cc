// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/tensor_file.h"

#include <limits>
#include <optional>
#include <utility>

#include "onnx/onnx_pb.h"
#include "passes/ir/check.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/tensor_encoding.h"
#include "proto/whole_file.h"

namespace addnorm::proto {
namespace {

using onnx::TensorProto;

absl::StatusOr<ir::Tensor> FromProto(TensorProto& proto) {
  if (proto.data_location() == TensorProto::EXTERNAL)
    return absl::UnimplementedError("external data are not supported here");
  ir::Tensor tensor;
  tensor.name = proto.name();
  tensor.type = static_cast<ir::DataType>(proto.data_type());
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  ASSIGN_OR_RETURN(const int64_t count, ElementCount(tensor));
  std::optional<std::string> bytes;
  if (proto.has_raw_data()) {
    bytes = std::move(*proto.mutable_raw_data());
  } else {
    bytes = DecodeTyped(tensor.type, proto);
  }
  if (!bytes) {
    return absl::UnimplementedError(
        fmt::format("elements of type {} are not supported",
                    ir::DataTypeName(tensor.type)));
  }
  const std::optional<uint64_t> size = ByteSize(tensor.type, count);
  if (size != bytes->size()) {
    return InvalidModel("has {} bytes of elements, expected {}", bytes->size(),
                        size.value_or(0));
  }
  tensor.elements = ir::InlineElements{*std::move(bytes)};
  return tensor;
}

}  // namespace

absl::StatusOr<ir::Tensor> ReadTensorFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path));
  TensorProto proto;
  if (bytes.empty())
    return InvalidModel("{}: is empty, expected a TensorProto", path);
  // Another message may parse, but its fields are not where a tensor's are.
  if (!proto.ParseFromString(bytes) ||
      proto.data_type() == TensorProto::UNDEFINED)
    return InvalidModel("{}: is no TensorProto", path);
  absl::StatusOr<ir::Tensor> tensor = FromProto(proto);
  if (tensor.ok()) return tensor;
  return WithContext(WithTensorName(tensor.status(), proto.name()), path);
}

absl::StatusOr<std::string> SerializeTensor(const ir::Tensor& tensor,
                                            const std::string& path) {
  TensorProto proto;
  proto.set_name(tensor.name);
  proto.set_data_type(static_cast<int32_t>(tensor.type));
  proto.mutable_dims()->Assign(tensor.dims.begin(), tensor.dims.end());
  const std::string* elements = tensor.inline_bytes();
  ADDNORM_CHECK(elements != nullptr, "elements are not inline");
  proto.set_raw_data(*elements);
  // protobuf counts bytes in an int.
  if (proto.ByteSizeLong() > std::numeric_limits<int>::max()) {
    return absl::ResourceExhaustedError(fmt::format(
        "{}: {} bytes are more than the 2 GiB that a TensorProto can have\n"
        "hint: --format npy has no such limit",
        path, elements->size()));
  }
  return proto.SerializeAsString();
}

absl::Status WriteTensorFile(const ir::Tensor& tensor, const std::string& path,
                             bool replace) {
  ASSIGN_OR_RETURN(const std::string bytes, SerializeTensor(tensor, path));
  return WriteWholeFile(path, bytes, replace);
}

}  // namespace addnorm::proto
