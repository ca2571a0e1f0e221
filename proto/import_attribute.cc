// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of GraphImporter that reads attributes and the graphs in them.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/import_graph.h"
#include "proto/tensor_data.h"

namespace addnorm::proto {
namespace {

using onnx::AttributeProto;

// Files of IR versions before 2 may leave the type out.
int TypeOf(const AttributeProto& proto) {
  if (proto.type() != AttributeProto::UNDEFINED) return proto.type();
  if (proto.has_f()) return AttributeProto::FLOAT;
  if (proto.has_i()) return AttributeProto::INT;
  if (proto.has_s()) return AttributeProto::STRING;
  if (proto.has_t()) return AttributeProto::TENSOR;
  if (proto.has_g()) return AttributeProto::GRAPH;
  if (proto.floats_size() > 0) return AttributeProto::FLOATS;
  if (proto.ints_size() > 0) return AttributeProto::INTS;
  if (proto.strings_size() > 0) return AttributeProto::STRINGS;
  if (proto.tensors_size() > 0) return AttributeProto::TENSORS;
  if (proto.graphs_size() > 0) return AttributeProto::GRAPHS;
  return AttributeProto::UNDEFINED;
}

// Numbers, strings, and lists of them; false for other types.
bool ReadPlainValue(const AttributeProto& proto, int type,
                    ir::AttributeValue& value) {
  switch (type) {
    case AttributeProto::FLOAT:
      value = proto.f();
      return true;
    case AttributeProto::INT:
      value = int64_t{proto.i()};
      return true;
    case AttributeProto::STRING:
      value = proto.s();
      return true;
    case AttributeProto::FLOATS:
      value = std::vector<float>(proto.floats().begin(), proto.floats().end());
      return true;
    case AttributeProto::INTS:
      value = std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
      return true;
    case AttributeProto::STRINGS:
      value = std::vector<std::string>(proto.strings().begin(),
                                       proto.strings().end());
      return true;
    default:
      return false;
  }
}

bool HasExternalData(const AttributeProto& proto) {
  const auto is_external = [](const onnx::SparseTensorProto& sparse) {
    return sparse.values().data_location() == onnx::TensorProto::EXTERNAL ||
           sparse.indices().data_location() == onnx::TensorProto::EXTERNAL;
  };
  return is_external(proto.sparse_tensor()) ||
         std::any_of(proto.sparse_tensors().begin(),
                     proto.sparse_tensors().end(), is_external);
}

// The records of a node's attributes by their number; most have none.
std::vector<RecordId> RecordsByIndex(const Document& document, RecordId node,
                                     int count) {
  std::vector<RecordId> records(static_cast<size_t>(count), -1);
  for (const RecordId id : document.Children({&node, 1}, Kind::kAttribute)) {
    records[document.record(id).index] = id;
  }
  return records;
}

}  // namespace

absl::Status GraphImporter::ReadAttributes(const onnx::NodeProto& proto,
                                           ir::Node& node) {
  const std::vector<RecordId> records =
      RecordsByIndex(document_, node.source, proto.attribute_size());
  node.attributes.reserve(records.size());
  absl::flat_hash_set<std::string_view> names;
  for (int i = 0; i < proto.attribute_size(); ++i) {
    const std::string& name = proto.attribute(i).name();
    if (!names.insert(name).second) {
      return InvalidModel("attribute '{}' is given twice", ir::Printable(name));
    }
    ir::Attribute attribute;
    const absl::Status status = ReadAttribute(
        proto.attribute(i), records[static_cast<size_t>(i)], node, attribute);
    if (!status.ok())
      return WithContext(status,
                         fmt::format("attribute '{}'", ir::Printable(name)));
    node.attributes.push_back(std::move(attribute));
  }
  return absl::OkStatus();
}

absl::Status GraphImporter::ReadAttribute(const AttributeProto& proto,
                                          RecordId record, ir::Node& node,
                                          ir::Attribute& attribute) {
  attribute.name = proto.name();
  attribute.type = TypeOf(proto);
  attribute.ref_attr_name = proto.ref_attr_name();
  attribute.source = record;
  if (!attribute.ref_attr_name.empty()) return absl::OkStatus();
  const std::span<const RecordId> parts(&record, record < 0 ? 0 : 1);
  // A long string that is left out of the skeleton: nobody looks into those.
  if (!document_.Children(parts, Kind::kPayload).empty()) {
    attribute.value = Opaque(proto, record);
    return absl::OkStatus();
  }
  if (ReadPlainValue(proto, attribute.type, attribute.value))
    return absl::OkStatus();
  switch (attribute.type) {
    case AttributeProto::TENSOR: {
      ASSIGN_OR_RETURN(
          attribute.value,
          ImportTensor(file_, proto.t(),
                       document_.Children(parts, Kind::kTensor, 5)));
      break;
    }
    case AttributeProto::TENSORS: {
      ASSIGN_OR_RETURN(attribute.value, ReadTensors(proto, parts));
      break;
    }
    case AttributeProto::GRAPH: {
      ASSIGN_OR_RETURN(
          attribute.value,
          ReadSubgraph(proto.g(), document_.Children(parts, Kind::kGraph, 6),
                       node));
      break;
    }
    case AttributeProto::GRAPHS: {
      std::vector<std::unique_ptr<ir::Graph>> graphs;
      const std::vector<RecordId> records =
          document_.Children(parts, Kind::kGraph, 11);
      for (int i = 0; i < proto.graphs_size(); ++i) {
        const RecordId graph = records[static_cast<size_t>(i)];
        ASSIGN_OR_RETURN(graphs.emplace_back(),
                         ReadSubgraph(proto.graphs(i), {&graph, 1}, node));
      }
      attribute.value = std::move(graphs);
      break;
    }
    case AttributeProto::SPARSE_TENSOR:
      attribute.value = Opaque(proto, record);
      return ReadSparse(proto.sparse_tensor(),
                        document_.Children(parts, Kind::kSparseTensor, 22))
          .status();
    case AttributeProto::SPARSE_TENSORS:
      attribute.value = Opaque(proto, record);
      return CheckSparseTensors(proto, parts);
    default:  // type protos, and what the future brings
      attribute.value = Opaque(proto, record);
  }
  return absl::OkStatus();
}

// Its bytes in the file where a part of it was left out of the skeleton.
ir::OpaqueAttribute GraphImporter::Opaque(const AttributeProto& proto,
                                          RecordId record) const {
  ir::OpaqueAttribute opaque;
  opaque.message.name = proto.name();
  // Equal words for a data file are not yet equal data.
  if (HasExternalData(proto)) return opaque;
  ir::OpaqueElements elements;
  if (record >= 0) {
    const Record& message = document_.record(record);
    elements.ranges = {{message.body, message.end - message.body}};
  } else {
    AttributeProto plain = proto;
    plain.clear_name();
    plain.clear_doc_string();
    elements.encoded = plain.SerializeAsString();
  }
  opaque.message.elements = std::move(elements);
  return opaque;
}

void GraphImporter::ReadDefaults(const onnx::FunctionProto& proto,
                                 ir::Function& function) {
  for (const AttributeProto& fallback : proto.attribute_proto()) {
    ir::Attribute& attribute = function.attribute_defaults.emplace_back();
    attribute.name = fallback.name();
    attribute.type = TypeOf(fallback);
    ReadPlainValue(fallback, attribute.type, attribute.value);
  }
}

absl::StatusOr<std::unique_ptr<ir::Graph>> GraphImporter::ReadSubgraph(
    const onnx::GraphProto& proto, std::span<const RecordId> parts,
    ir::Node& node) {
  if (parts.empty())
    return InvalidModel("is of type graph, expected a graph, found none");
  auto graph = std::make_unique<ir::Graph>();
  graph->SetPlace(node.graph()->model(), node.graph()->function(), &node);
  RETURN_IF_ERROR(ImportGraph(proto, parts, *graph));
  return graph;
}

// Only large tensors have records; the rest need none.
std::vector<std::vector<RecordId>> GraphImporter::PartsByIndex(
    std::span<const RecordId> attribute, Kind kind, int field, int count) {
  std::vector<std::vector<RecordId>> parts(static_cast<size_t>(count));
  for (const RecordId id : document_.Children(attribute, kind, field)) {
    parts[document_.record(id).index] = {id};
  }
  return parts;
}

absl::StatusOr<std::vector<ir::Tensor>> GraphImporter::ReadTensors(
    const AttributeProto& proto, std::span<const RecordId> attribute) {
  std::vector<ir::Tensor> tensors;
  const auto parts =
      PartsByIndex(attribute, Kind::kTensor, 10, proto.tensors_size());
  for (int i = 0; i < proto.tensors_size(); ++i) {
    ASSIGN_OR_RETURN(
        tensors.emplace_back(),
        ImportTensor(file_, proto.tensors(i), parts[static_cast<size_t>(i)]));
  }
  return tensors;
}

absl::Status GraphImporter::CheckSparseTensors(
    const AttributeProto& proto, std::span<const RecordId> attribute) {
  const auto parts = PartsByIndex(attribute, Kind::kSparseTensor, 23,
                                  proto.sparse_tensors_size());
  for (int i = 0; i < proto.sparse_tensors_size(); ++i) {
    RETURN_IF_ERROR(
        ReadSparse(proto.sparse_tensors(i), parts[static_cast<size_t>(i)])
            .status());
  }
  return absl::OkStatus();
}

}  // namespace addnorm::proto
