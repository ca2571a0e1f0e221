// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/serialize.h"

#include <utility>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"
#include "onnx/onnx_pb.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/wire.h"

namespace addnorm::proto {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;
using onnx::AttributeProto;

std::string Field(int number, WireFormatLite::WireType wire_type,
                  uint64_t value, const std::string& body) {
  std::string bytes;
  {
    StringOutputStream stream(&bytes);
    CodedOutputStream out(&stream);
    out.WriteTag(WireFormatLite::MakeTag(number, wire_type));
    out.WriteVarint64(value);
    out.WriteString(body);
  }
  return bytes;
}

std::string MessageField(int number, const std::string& message) {
  return Field(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED,
               message.size(), message);
}

absl::Status Serialize(const ir::Tensor& tensor, onnx::TensorProto& proto) {
  const std::string* bytes = tensor.inline_bytes();
  if (bytes == nullptr)
    return absl::InternalError("a new tensor is not inline");
  if (!tensor.name.empty()) proto.set_name(tensor.name);
  proto.set_data_type(static_cast<int32_t>(tensor.type));
  proto.mutable_dims()->Add(tensor.dims.begin(), tensor.dims.end());
  proto.set_raw_data(*bytes);
  return absl::OkStatus();
}

struct ValueWriter {
  AttributeProto& proto;

  absl::Status operator()(int64_t value) const {
    return Set(AttributeProto::INT, [&] { proto.set_i(value); });
  }
  absl::Status operator()(float value) const {
    return Set(AttributeProto::FLOAT, [&] { proto.set_f(value); });
  }
  absl::Status operator()(const std::string& value) const {
    return Set(AttributeProto::STRING, [&] { proto.set_s(value); });
  }
  absl::Status operator()(const std::vector<int64_t>& values) const {
    return Set(AttributeProto::INTS, [&] {
      proto.mutable_ints()->Add(values.begin(), values.end());
    });
  }
  absl::Status operator()(const std::vector<float>& values) const {
    return Set(AttributeProto::FLOATS, [&] {
      proto.mutable_floats()->Add(values.begin(), values.end());
    });
  }
  absl::Status operator()(const std::vector<std::string>& values) const {
    return Set(AttributeProto::STRINGS, [&] {
      for (const std::string& value : values) proto.add_strings(value);
    });
  }
  absl::Status operator()(const ir::Tensor& tensor) const {
    proto.set_type(AttributeProto::TENSOR);
    return Serialize(tensor, *proto.mutable_t());
  }
  absl::Status operator()(const std::vector<ir::Tensor>& tensors) const {
    proto.set_type(AttributeProto::TENSORS);
    for (const ir::Tensor& tensor : tensors) {
      RETURN_IF_ERROR(Serialize(tensor, *proto.add_tensors()));
    }
    return absl::OkStatus();
  }
  absl::Status operator()(const ir::OpaqueAttribute&) const {
    return absl::InternalError("an attribute without value in a new node");
  }
  absl::Status operator()(const std::unique_ptr<ir::Graph>&) const {
    return NoGraphs();
  }
  absl::Status operator()(
      const std::vector<std::unique_ptr<ir::Graph>>&) const {
    return NoGraphs();
  }

 private:
  template <typename Setter>
  absl::Status Set(AttributeProto::AttributeType type, Setter set) const {
    proto.set_type(type);
    set();
    return absl::OkStatus();
  }
  static absl::Status NoGraphs() {
    return absl::InternalError("a graph in an attribute of a new node");
  }
};

absl::Status Serialize(const ir::Attribute& attribute, AttributeProto& proto) {
  proto.set_name(attribute.name);
  if (attribute.ref_attr_name.empty())
    return std::visit(ValueWriter{proto}, attribute.value);
  proto.set_ref_attr_name(attribute.ref_attr_name);
  proto.set_type(static_cast<AttributeProto::AttributeType>(attribute.type));
  return absl::OkStatus();
}

std::string NameOf(const ir::Value* value) {
  return value == nullptr ? "" : value->name();
}

absl::Status Serialize(const ir::Node& node, onnx::NodeProto& proto) {
  for (const ir::Value* value : node.inputs()) proto.add_input(NameOf(value));
  for (const ir::Value* value : node.outputs()) proto.add_output(NameOf(value));
  if (!node.name.empty()) proto.set_name(node.name);
  proto.set_op_type(node.op_type());
  if (!node.domain().empty()) proto.set_domain(node.domain());
  if (!node.overload.empty()) proto.set_overload(node.overload);
  for (const ir::Attribute& attribute : node.attributes) {
    RETURN_IF_ERROR(Serialize(attribute, *proto.add_attribute()));
  }
  return absl::OkStatus();
}

// Fields of a node that say what it computes; a new node has its own.
bool IsOwn(int field) {
  using onnx::NodeProto;
  return field == NodeProto::kInputFieldNumber ||
         field == NodeProto::kOutputFieldNumber ||
         field == NodeProto::kNameFieldNumber ||
         field == NodeProto::kOpTypeFieldNumber ||
         field == NodeProto::kDomainFieldNumber ||
         field == NodeProto::kOverloadFieldNumber ||
         field == NodeProto::kAttributeFieldNumber ||
         field == NodeProto::kDeviceConfigurationsFieldNumber;
}

// The bytes of the other fields: doc string, metadata, and whatever is not
// known here.
absl::StatusOr<std::string> InheritedFields(const ModelFile& file,
                                            RecordId source) {
  const Record& record = file.document().record(source);
  std::string message(record.end - record.body, '\0');
  RETURN_IF_ERROR(file.Read(record.body, message.size(), message.data()));
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()),
                      static_cast<int>(message.size()));
  std::string inherited;
  while (true) {
    const int begin = in.CurrentPosition();
    const uint32_t tag = in.ReadTag();
    if (tag == 0) return inherited;
    if (!WireFormatLite::SkipField(&in, tag))
      return absl::InternalError("a node that does not parse");
    if (IsOwn(WireFormatLite::GetTagFieldNumber(tag))) continue;
    inherited.append(message, static_cast<size_t>(begin),
                     static_cast<size_t>(in.CurrentPosition() - begin));
  }
}

}  // namespace

absl::StatusOr<std::string> NodeField(const ModelFile& file,
                                      const ir::Node& node, int field) {
  onnx::NodeProto proto;
  RETURN_IF_ERROR(WithContext(Serialize(node, proto), node.Describe()));
  std::string bytes = proto.SerializeAsString();
  if (node.inherits_from != ir::kNoSource) {
    ASSIGN_OR_RETURN(const std::string inherited,
                     InheritedFields(file, node.inherits_from));
    bytes += inherited;
  }
  return MessageField(field, bytes);
}

absl::StatusOr<std::string> FunctionField(const ir::Function& function) {
  onnx::FunctionProto proto;
  proto.set_name(function.name);
  proto.set_domain(function.domain);
  if (!function.overload.empty()) proto.set_overload(function.overload);
  if (!function.doc_string.empty()) proto.set_doc_string(function.doc_string);
  for (const ir::Value* value : function.body.inputs())
    proto.add_input(value->name());
  for (const ir::Value* value : function.body.outputs())
    proto.add_output(value->name());
  for (const std::string& attribute : function.attributes)
    proto.add_attribute(attribute);
  for (const ir::Attribute& attribute : function.attribute_defaults)
    RETURN_IF_ERROR(Serialize(attribute, *proto.add_attribute_proto()));
  for (const ir::OpsetImport& import : function.opset_imports) {
    auto* added = proto.add_opset_import();
    added->set_domain(import.domain);
    added->set_version(import.version);
  }
  for (const ir::Node& node : function.body.nodes()) {
    RETURN_IF_ERROR(
        WithContext(Serialize(node, *proto.add_node()), function.name));
  }
  return MessageField(onnx::ModelProto::kFunctionsFieldNumber,
                      proto.SerializeAsString());
}

std::string OpsetImportField(const ir::OpsetImport& import, int field) {
  onnx::OperatorSetIdProto proto;
  proto.set_domain(import.domain);
  proto.set_version(import.version);
  return MessageField(field, proto.SerializeAsString());
}

std::string IrVersionField(int64_t version) {
  return Field(onnx::ModelProto::kIrVersionFieldNumber,
               WireFormatLite::WIRETYPE_VARINT, static_cast<uint64_t>(version),
               "");
}

}  // namespace addnorm::proto
