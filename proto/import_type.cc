// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/import_type.h"

#include "fmt/format.h"

namespace addnorm::proto {
namespace {

std::string TextOf(const onnx::TypeProto& proto) {
  using onnx::TypeProto;
  const auto element = [](int32_t type) {
    return ir::DataTypeName(static_cast<ir::DataType>(type));
  };
  switch (proto.value_case()) {
    case TypeProto::kTensorType:
      return ir::ToString(ImportType(proto));
    case TypeProto::kSequenceType:
      return fmt::format("sequence({})",
                         TextOf(proto.sequence_type().elem_type()));
    case TypeProto::kOptionalType:
      return fmt::format("optional({})",
                         TextOf(proto.optional_type().elem_type()));
    case TypeProto::kMapType:
      return fmt::format("map({}, {})", element(proto.map_type().key_type()),
                         TextOf(proto.map_type().value_type()));
    case TypeProto::kSparseTensorType:
      return fmt::format("sparse({})",
                         element(proto.sparse_tensor_type().elem_type()));
    default:
      return "";
  }
}

}  // namespace

ir::TensorType ImportType(const onnx::TypeProto& proto) {
  ir::TensorType type;
  if (!proto.has_tensor_type()) {
    type.other = TextOf(proto);
    return type;
  }
  type.element = static_cast<ir::DataType>(proto.tensor_type().elem_type());
  if (!proto.tensor_type().has_shape()) return type;
  type.shape.emplace();
  for (const auto& dim : proto.tensor_type().shape().dim()) {
    ir::Dimension& dimension = type.shape->emplace_back();
    // Some writers spell an unknown dimension as -1.
    if (dim.has_dim_value() && dim.dim_value() >= 0)
      dimension.value = dim.dim_value();
    if (dim.has_dim_param()) dimension.symbol = dim.dim_param();
  }
  return type;
}

void Refine(ir::TensorType& type, const ir::TensorType& more) {
  if (!type.known()) type.element = more.element;
  if (type.other.empty()) type.other = more.other;
  if (!more.shape) return;
  if (!type.shape) {
    type.shape = more.shape;
    return;
  }
  if (ir::ProvablyDiffer(*type.shape, *more.shape)) return;
  for (size_t i = 0; i < type.shape->size(); ++i) {
    ir::Dimension& known = (*type.shape)[i];
    if (!known.value && known.symbol.empty()) known = (*more.shape)[i];
  }
}

}  // namespace addnorm::proto
