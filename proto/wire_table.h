// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Which fields of which messages the walk (proto/wire.cc) descends into or
// records. It is not the whole of onnx.proto: everything else is skipped.
//
//   KindOf(Kind::kGraph, 1, WIRETYPE_LENGTH_DELIMITED);  // Kind::kNode
#ifndef ADDNORM_PROTO_WIRE_TABLE_H_
#define ADDNORM_PROTO_WIRE_TABLE_H_

#include <array>
#include <cstddef>
#include <optional>

#include "google/protobuf/wire_format_lite.h"
#include "proto/wire.h"

namespace addnorm::proto {

struct Child {
  Kind parent;
  int field;
  Kind kind;
};

// What the walk descends into. Field numbers are those of onnx.proto.
inline constexpr Child kChildren[] = {
    {Kind::kModel, 1, Kind::kIrVersion},
    {Kind::kModel, 7, Kind::kGraph},
    {Kind::kModel, 8, Kind::kOpsetImport},
    {Kind::kModel, 20, Kind::kTrainingInfo},
    {Kind::kModel, 25, Kind::kFunction},
    {Kind::kTrainingInfo, 1, Kind::kGraph},
    {Kind::kTrainingInfo, 2, Kind::kGraph},
    {Kind::kGraph, 1, Kind::kNode},
    {Kind::kGraph, 5, Kind::kTensor},
    {Kind::kGraph, 13, Kind::kValueInfo},
    {Kind::kGraph, 15, Kind::kSparseTensor},
    {Kind::kNode, 5, Kind::kAttribute},
    {Kind::kAttribute, 4, Kind::kPayload},  // s
    {Kind::kAttribute, 5, Kind::kTensor},
    {Kind::kAttribute, 6, Kind::kGraph},
    {Kind::kAttribute, 9, Kind::kPayload},  // strings
    {Kind::kAttribute, 10, Kind::kTensor},
    {Kind::kAttribute, 11, Kind::kGraph},
    {Kind::kAttribute, 22, Kind::kSparseTensor},
    {Kind::kAttribute, 23, Kind::kSparseTensor},
    {Kind::kTensor, 4, Kind::kPayload},   // float_data
    {Kind::kTensor, 5, Kind::kPayload},   // int32_data
    {Kind::kTensor, 6, Kind::kPayload},   // string_data
    {Kind::kTensor, 7, Kind::kPayload},   // int64_data
    {Kind::kTensor, 9, Kind::kPayload},   // raw_data
    {Kind::kTensor, 10, Kind::kPayload},  // double_data
    {Kind::kTensor, 11, Kind::kPayload},  // uint64_data
    {Kind::kSparseTensor, 1, Kind::kTensor},
    {Kind::kSparseTensor, 2, Kind::kTensor},
    {Kind::kFunction, 7, Kind::kNode},
    {Kind::kFunction, 9, Kind::kOpsetImport},
    {Kind::kFunction, 11, Kind::kAttribute},
    {Kind::kFunction, 12, Kind::kValueInfo},
};

inline constexpr int kMaxField = 25;
using ChildTable = std::array<std::array<Kind, kMaxField + 1>, 16>;

constexpr ChildTable MakeChildTable() {
  ChildTable table{};
  for (const Child& child : kChildren) {
    table[static_cast<size_t>(child.parent)][static_cast<size_t>(child.field)] =
        child.kind;
  }
  return table;
}
inline constexpr ChildTable kChildTable = MakeChildTable();

// The wire type of one unpacked element of a repeated scalar field of a tensor.
inline std::optional<int> ElementWireType(Kind parent, int field) {
  if (parent != Kind::kTensor) return std::nullopt;
  if (field == 4)
    return google::protobuf::internal::WireFormatLite::WIRETYPE_FIXED32;
  if (field == 10)
    return google::protobuf::internal::WireFormatLite::WIRETYPE_FIXED64;
  if (field == 5 || field == 7 || field == 11)
    return google::protobuf::internal::WireFormatLite::WIRETYPE_VARINT;
  return std::nullopt;
}

// What a field of this wire type is to the walk. A known field of another type
// than its own is an unknown field for libprotobuf, hence for us.
inline Kind KindOf(Kind parent, int field, int wire_type) {
  if (field > kMaxField) return Kind::kUnrecorded;
  const Kind kind =
      kChildTable[static_cast<size_t>(parent)][static_cast<size_t>(field)];
  if (kind == Kind::kIrVersion) {
    return wire_type ==
                   google::protobuf::internal::WireFormatLite::WIRETYPE_VARINT
               ? kind
               : Kind::kUnrecorded;
  }
  const bool fits =
      wire_type == google::protobuf::internal::WireFormatLite::
                       WIRETYPE_LENGTH_DELIMITED ||
      (kind == Kind::kPayload && wire_type == ElementWireType(parent, field));
  return fits ? kind : Kind::kUnrecorded;
}

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_WIRE_TABLE_H_
