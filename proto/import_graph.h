// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// From one GraphProto or FunctionProto to an ir::Graph, subgraphs included. For
// .cc files of this folder only: it includes onnx.
//
// Names are resolved as the whole graph's: a node may read what a later one
// makes. A name made in an inner graph hides an outer one of the same name;
// where a node reads it before it is made, either could be meant, and the model
// is refused.
//
//   GraphImporter importer(file, model, warnings);
//   RETURN_IF_ERROR(importer.ImportGraph(proto, parts, model.graph));
#ifndef ADDNORM_PROTO_IMPORT_GRAPH_H_
#define ADDNORM_PROTO_IMPORT_GRAPH_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "onnx/onnx_pb.h"
#include "passes/ir/model.h"
#include "proto/model_file.h"
#include "proto/wire.h"

namespace addnorm::proto {

class GraphImporter {
 public:
  GraphImporter(const ModelFile& file, std::vector<std::string>& warnings)
      : file_(file), document_(file.document()), warnings_(warnings) {}

  // `graph` knows its place (model, function, owner) already. `parts` are its
  // records.
  absl::Status ImportGraph(const onnx::GraphProto& proto,
                           std::span<const RecordId> parts, ir::Graph& graph);
  absl::Status ImportFunction(const onnx::FunctionProto& proto, RecordId record,
                              ir::Function& function);

 private:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
  using ValueInfos = google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>;

  // What makes values, then what reads them.
  absl::Status AddInput(const std::string& name, ir::Graph& graph);
  absl::Status AddInitializers(const onnx::GraphProto& proto,
                               std::span<const RecordId> parts,
                               ir::Graph& graph);
  absl::Status AddSparseInitializers(const onnx::GraphProto& proto,
                                     std::span<const RecordId> parts,
                                     ir::Graph& graph);
  absl::StatusOr<ir::Value*> InitializerValue(const std::string& name,
                                              ir::Graph& graph);
  absl::Status AddNodes(const Nodes& nodes, std::span<const RecordId> parts,
                        ir::Graph& graph);
  absl::Status AddNodeOutputs(const onnx::NodeProto& proto, ir::Graph& graph,
                              ir::Node& node);
  void AddValueInfos(const ValueInfos& infos, std::span<const RecordId> parts,
                     ir::Graph& graph);
  absl::Status ReadOperands(const Nodes& nodes, ir::Graph& graph);
  absl::Status ReadNode(const onnx::NodeProto& proto, ir::Graph& graph,
                        ir::Node& node);
  absl::Status AddOutput(const std::string& name, ir::Graph& graph);
  void MarkPinned(const onnx::GraphProto& proto, ir::Graph& graph);

  void ReadDefaults(const onnx::FunctionProto& proto, ir::Function& function);
  absl::Status ReadAttributes(const onnx::NodeProto& proto, ir::Node& node);
  absl::Status ReadAttribute(const onnx::AttributeProto& proto, RecordId record,
                             ir::Node& node, ir::Attribute& attribute);
  absl::StatusOr<std::unique_ptr<ir::Graph>> ReadSubgraph(
      const onnx::GraphProto& proto, std::span<const RecordId> parts,
      ir::Node& node);
  absl::StatusOr<std::vector<ir::Tensor>> ReadTensors(
      const onnx::AttributeProto& proto, std::span<const RecordId> attribute);
  std::vector<std::vector<RecordId>> PartsByIndex(
      std::span<const RecordId> attribute, Kind kind, int field, int count);
  absl::Status CheckSparseTensors(const onnx::AttributeProto& proto,
                                  std::span<const RecordId> attribute);
  ir::OpaqueAttribute Opaque(const onnx::AttributeProto& proto,
                             RecordId record) const;
  absl::StatusOr<ir::SparseTensor> ReadSparse(
      const onnx::SparseTensorProto& proto, std::span<const RecordId> parts);

  // The value of that name in the graph or, captured, in an outer one.
  static ir::Value* Lookup(const std::string& name, const ir::Graph& graph);
  absl::Status CheckNotAmbiguous(const ir::Value& value,
                                 const ir::Node& reader) const;

  const ModelFile& file_;
  const Document& document_;
  std::vector<std::string>& warnings_;
  absl::flat_hash_set<const ir::Value*> hiding_;  // a value of an outer graph
};

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_IMPORT_GRAPH_H_
