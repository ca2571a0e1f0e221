// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/import_graph.h"

#include <utility>

#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/import_type.h"
#include "proto/tensor_data.h"

namespace addnorm::proto {
namespace {

std::string CanonicalDomain(const std::string& domain) {
  return domain == "ai.onnx" ? std::string() : domain;
}

ir::TensorType TypeOf(const ir::Tensor& tensor) {
  return {.element = tensor.type,
          .shape = ir::Shape(tensor.dims.begin(), tensor.dims.end())};
}

// "Add 'residual' (node[3])": the place tells nodes without a name apart, and
// is what ONNX's Python calls it.
std::string DescribeMaker(const ir::Node& node) {
  return fmt::format("{}{} (node[{}])", node.op_type(),
                     node.name.empty() ? "" : fmt::format(" '{}'", node.name),
                     static_cast<int64_t>(node.order));
}

std::string MakerOf(const ir::Value& value) {
  if (value.producer() != nullptr) return DescribeMaker(*value.producer());
  return value.is_input() ? "an input" : "an initializer";
}

absl::Status MadeTwice(const ir::Value& value, std::string_view again) {
  return InvalidModel("value '{}' is made twice, by {} and by {}",
                      ir::Printable(value.name()),
                      ir::Printable(MakerOf(value)), ir::Printable(again));
}

// The ancestor (or itself) of the node that is directly in the graph.
const ir::Node* InGraph(const ir::Node* node, const ir::Graph* graph) {
  while (node != nullptr && node->graph() != graph)
    node = node->graph()->owner();
  return node;
}

}  // namespace

ir::Value* GraphImporter::Lookup(const std::string& name,
                                 const ir::Graph& graph) {
  for (const ir::Graph* scope = &graph; scope != nullptr;
       scope = scope->outer()) {
    if (ir::Value* value = scope->FindValue(name)) return value;
  }
  return nullptr;
}

absl::Status GraphImporter::ImportGraph(const onnx::GraphProto& proto,
                                        std::span<const RecordId> parts,
                                        ir::Graph& graph) {
  graph.name = proto.name();
  graph.source = parts.front();
  for (const auto& input : proto.input()) {
    RETURN_IF_ERROR(AddInput(input.name(), graph));
    graph.inputs().back()->type = ImportType(input.type());
  }
  RETURN_IF_ERROR(AddInitializers(proto, parts, graph));
  RETURN_IF_ERROR(AddSparseInitializers(proto, parts, graph));
  RETURN_IF_ERROR(AddNodes(proto.node(), parts, graph));
  for (const auto& output : proto.output()) {
    if (ir::Value* value = graph.FindValue(output.name())) {
      Refine(value->type, ImportType(output.type()));
    }
  }
  AddValueInfos(proto.value_info(), parts, graph);
  RETURN_IF_ERROR(ReadOperands(proto.node(), graph));
  for (const auto& output : proto.output())
    RETURN_IF_ERROR(AddOutput(output.name(), graph));
  MarkPinned(proto, graph);
  graph.NumberNodes();
  return absl::OkStatus();
}

absl::Status GraphImporter::ImportFunction(const onnx::FunctionProto& proto,
                                           RecordId record,
                                           ir::Function& function) {
  function.domain = CanonicalDomain(proto.domain());
  function.name = proto.name();
  function.overload = proto.overload();
  function.doc_string = proto.doc_string();
  function.attributes.assign(proto.attribute().begin(),
                             proto.attribute().end());
  ReadDefaults(proto, function);
  function.source = record;
  for (const auto& import : proto.opset_import()) {
    function.opset_imports.push_back(
        {.domain = CanonicalDomain(import.domain()),
         .version = import.version()});
  }
  ir::Graph& body = function.body;
  body.name = proto.name();
  body.source = record;
  const std::span<const RecordId> parts(&record, 1);
  for (const std::string& input : proto.input())
    RETURN_IF_ERROR(AddInput(input, body));
  RETURN_IF_ERROR(AddNodes(proto.node(), parts, body));
  AddValueInfos(proto.value_info(), parts, body);
  RETURN_IF_ERROR(ReadOperands(proto.node(), body));
  for (const std::string& output : proto.output())
    RETURN_IF_ERROR(AddOutput(output, body));
  body.NumberNodes();
  return absl::OkStatus();
}

absl::Status GraphImporter::AddInput(const std::string& name,
                                     ir::Graph& graph) {
  if (name.empty())
    return InvalidModel("graph '{}': an input has no name",
                        ir::Printable(graph.name));
  if (const ir::Value* value = graph.FindValue(name))
    return MadeTwice(*value, "an input");
  graph.AddInput(name);
  return absl::OkStatus();
}

// The value that an initializer of that name gives; nullptr for one without
// name, which nothing can read.
absl::StatusOr<ir::Value*> GraphImporter::InitializerValue(
    const std::string& name, ir::Graph& graph) {
  if (name.empty()) return nullptr;
  ir::Value* value = graph.FindValue(name);
  if (value == nullptr) return graph.AddValue(name);
  const bool is_default = value->is_input() &&
                          value->initializer() == nullptr &&
                          !value->is_sparse_initializer();
  if (!is_default) return MadeTwice(*value, "an initializer");
  return value;
}

absl::Status GraphImporter::AddInitializers(const onnx::GraphProto& proto,
                                            std::span<const RecordId> parts,
                                            ir::Graph& graph) {
  const std::vector<RecordId> records =
      document_.Children(parts, Kind::kTensor);
  for (int i = 0; i < proto.initializer_size(); ++i) {
    const RecordId record = records[static_cast<size_t>(i)];
    ASSIGN_OR_RETURN(ir::Tensor tensor,
                     ImportTensor(file_, proto.initializer(i), {&record, 1}));
    ASSIGN_OR_RETURN(ir::Value * value, InitializerValue(tensor.name, graph));
    if (value == nullptr) continue;
    Refine(value->type, TypeOf(tensor));
    graph.SetInitializer(value, std::make_unique<ir::Tensor>(std::move(tensor)),
                         record);
  }
  return absl::OkStatus();
}

absl::Status GraphImporter::AddSparseInitializers(
    const onnx::GraphProto& proto, std::span<const RecordId> parts,
    ir::Graph& graph) {
  const std::vector<RecordId> records =
      document_.Children(parts, Kind::kSparseTensor);
  for (int i = 0; i < proto.sparse_initializer_size(); ++i) {
    const onnx::SparseTensorProto& sparse = proto.sparse_initializer(i);
    const RecordId record = records[static_cast<size_t>(i)];
    ASSIGN_OR_RETURN(ir::SparseTensor tensor, ReadSparse(sparse, {&record, 1}));
    ASSIGN_OR_RETURN(ir::Value * value,
                     InitializerValue(sparse.values().name(), graph));
    if (value == nullptr) continue;
    Refine(value->type,
           {.element = static_cast<ir::DataType>(sparse.values().data_type()),
            .shape = ir::Shape(sparse.dims().begin(), sparse.dims().end())});
    graph.SetSparseInitializer(
        value, std::make_unique<ir::SparseTensor>(std::move(tensor)), record);
  }
  return absl::OkStatus();
}

absl::StatusOr<ir::SparseTensor> GraphImporter::ReadSparse(
    const onnx::SparseTensorProto& proto, std::span<const RecordId> parts) {
  ir::SparseTensor sparse;
  ASSIGN_OR_RETURN(sparse.values,
                   ImportTensor(file_, proto.values(),
                                document_.Children(parts, Kind::kTensor, 1)));
  ASSIGN_OR_RETURN(sparse.indices,
                   ImportTensor(file_, proto.indices(),
                                document_.Children(parts, Kind::kTensor, 2)));
  sparse.dims.assign(proto.dims().begin(), proto.dims().end());
  return sparse;
}

absl::Status GraphImporter::AddNodes(const Nodes& nodes,
                                     std::span<const RecordId> parts,
                                     ir::Graph& graph) {
  const std::vector<RecordId> records = document_.Children(parts, Kind::kNode);
  for (int i = 0; i < nodes.size(); ++i) {
    const onnx::NodeProto& proto = nodes[i];
    if (proto.op_type().empty()) {
      return InvalidModel("node '{}': has no op_type",
                          ir::Printable(proto.name()));
    }
    ir::Node* node =
        graph.AddNode(CanonicalDomain(proto.domain()), proto.op_type());
    node->name = proto.name();
    node->overload = proto.overload();
    node->order = i;
    node->source = records[static_cast<size_t>(i)];
    node->has_device_configurations = proto.device_configurations_size() > 0;
    RETURN_IF_ERROR(AddNodeOutputs(proto, graph, *node));
  }
  return absl::OkStatus();
}

absl::Status GraphImporter::AddNodeOutputs(const onnx::NodeProto& proto,
                                           ir::Graph& graph, ir::Node& node) {
  for (const std::string& name : proto.output()) {
    if (name.empty()) {
      graph.AddNodeOutput(&node, nullptr);
      continue;
    }
    if (const ir::Value* value = graph.FindValue(name))
      return MadeTwice(*value, DescribeMaker(node));
    ir::Value* value = graph.AddValue(name);
    graph.AddNodeOutput(&node, value);
    const ir::Graph* outer = graph.outer();
    if (outer != nullptr && Lookup(name, *outer) != nullptr)
      hiding_.insert(value);
  }
  return absl::OkStatus();
}

void GraphImporter::AddValueInfos(const ValueInfos& infos,
                                  std::span<const RecordId> parts,
                                  ir::Graph& graph) {
  const std::vector<RecordId> records =
      document_.Children(parts, Kind::kValueInfo);
  for (int i = 0; i < infos.size(); ++i) {
    ir::Value* value = graph.FindValue(infos[i].name());
    if (value == nullptr) continue;  // about a value that is no more
    Refine(value->type, ImportType(infos[i].type()));
    graph.AddValueInfo(value, records[static_cast<size_t>(i)]);
  }
}

absl::Status GraphImporter::ReadOperands(const Nodes& nodes, ir::Graph& graph) {
  auto node = graph.nodes().begin();
  for (const onnx::NodeProto& proto : nodes) {
    const absl::Status status = ReadNode(proto, graph, *node);
    if (!status.ok()) {
      return WithContext(
          status, fmt::format("node {}", ir::Printable(node->Describe())));
    }
    ++node;
  }
  return absl::OkStatus();
}

absl::Status GraphImporter::ReadNode(const onnx::NodeProto& proto,
                                     ir::Graph& graph, ir::Node& node) {
  for (const std::string& name : proto.input()) {
    ir::Value* value = name.empty() ? nullptr : Lookup(name, graph);
    if (value == nullptr && !name.empty()) {
      return InvalidModel("input '{}' is made by no node, input or initializer",
                          ir::Printable(name));
    }
    if (value != nullptr) RETURN_IF_ERROR(CheckNotAmbiguous(*value, node));
    graph.AddNodeInput(&node, value);
  }
  return ReadAttributes(proto, node);
}

absl::Status GraphImporter::CheckNotAmbiguous(const ir::Value& value,
                                              const ir::Node& reader) const {
  if (hiding_.empty() || !hiding_.contains(&value)) return absl::OkStatus();
  if (InGraph(&reader, value.graph())->order > value.producer()->order)
    return absl::OkStatus();
  return InvalidModel(
      "input '{}' is read before its graph makes it, and an outer graph makes "
      "it too\n"
      "hint: rename one of the two values",
      ir::Printable(value.name()));
}

absl::Status GraphImporter::AddOutput(const std::string& name,
                                      ir::Graph& graph) {
  ir::Value* value = Lookup(name, graph);
  if (value == nullptr) {
    const bool is_main =
        graph.function() == nullptr && graph.owner() == nullptr;
    if (!is_main || name.empty()) {
      return InvalidModel(
          "output '{}' of graph '{}' is made by no node, input or initializer",
          ir::Printable(name), ir::Printable(graph.name));
    }
    warnings_.push_back(fmt::format("graph output '{}' is made by nothing",
                                    ir::Printable(name)));
    value = graph.AddValue(name);
  }
  graph.AddOutput(value);
  return absl::OkStatus();
}

void GraphImporter::MarkPinned(const onnx::GraphProto& proto,
                               ir::Graph& graph) {
  const auto mark = [&](const std::string& name) {
    if (ir::Value* value = Lookup(name, graph)) graph.MarkPinned(value);
  };
  for (const auto& annotation : proto.quantization_annotation()) {
    mark(annotation.tensor_name());
    for (const auto& parameter : annotation.quant_parameter_tensor_names())
      mark(parameter.value());
  }
}

}  // namespace addnorm::proto
