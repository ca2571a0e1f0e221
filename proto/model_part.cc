// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/model_part.h"

#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "onnx/onnx_pb.h"
#include "passes/ir/status_macros.h"
#include "proto/serialize.h"
#include "proto/wire.h"

namespace addnorm::proto {
namespace {

void AddValueInfo(const ir::Tensor& tensor, onnx::ValueInfoProto& info) {
  info.set_name(tensor.name);
  auto* type = info.mutable_type()->mutable_tensor_type();
  type->set_elem_type(static_cast<int32_t>(tensor.type));
  type->mutable_shape();
  for (const int64_t dim : tensor.dims)
    type->mutable_shape()->add_dim()->set_dim_value(dim);
}

void AddInitializer(const ir::Tensor& tensor, onnx::TensorProto& proto) {
  proto.set_name(tensor.name);
  proto.set_data_type(static_cast<int32_t>(tensor.type));
  proto.mutable_dims()->Add(tensor.dims.begin(), tensor.dims.end());
  proto.set_raw_data(*tensor.inline_bytes());
}

// A message of the file as it is there.
template <typename Message>
absl::Status ParseSource(const ModelFile& file, ir::Source source,
                         Message& message) {
  if (source == ir::kNoSource)
    return absl::InternalError("a part that is not in the file");
  const Record& record = file.document().record(source);
  std::string bytes(record.end - record.body, '\0');
  RETURN_IF_ERROR(file.Read(record.body, bytes.size(), bytes.data()));
  return message.ParseFromString(bytes)
             ? absl::OkStatus()
             : absl::InternalError("a part that does not parse");
}

// Copies nodes, with the graphs in them, under the names that the part has.
class NodeCopier {
 public:
  NodeCopier(const ModelFile& file, const ModelPart& part)
      : file_(file), part_(part) {}

  absl::Status Copy(const ir::Node& node, onnx::NodeProto& proto) {
    RETURN_IF_ERROR(ParseSource(file_, node.source, proto));
    return Edit(node, proto);
  }

 private:
  absl::Status Edit(const ir::Node& node, onnx::NodeProto& proto) {
    proto.set_domain(node.domain());
    for (int i = 0; i < proto.input_size(); ++i)
      Rename(node.input(static_cast<size_t>(i)), *proto.mutable_input(i));
    for (int i = 0; i < proto.output_size(); ++i)
      Rename(node.output(static_cast<size_t>(i)), *proto.mutable_output(i));
    // The importer keeps attributes, and nodes, in the order of the file.
    for (size_t i = 0; i < node.attributes.size(); ++i) {
      RETURN_IF_ERROR(Edit(node.attributes[i],
                           *proto.mutable_attribute(static_cast<int>(i))));
    }
    return absl::OkStatus();
  }

  absl::Status Edit(const ir::Attribute& attribute,
                    onnx::AttributeProto& proto) {
    if (const auto* graph = attribute.get<std::unique_ptr<ir::Graph>>())
      return Edit(**graph, *proto.mutable_g());
    if (const auto* tensor = attribute.get<ir::Tensor>())
      return Embed(*tensor, *proto.mutable_t());
    const auto* graphs =
        attribute.get<std::vector<std::unique_ptr<ir::Graph>>>();
    if (graphs == nullptr) return absl::OkStatus();
    for (size_t i = 0; i < graphs->size(); ++i) {
      RETURN_IF_ERROR(
          Edit(*(*graphs)[i], *proto.mutable_graphs(static_cast<int>(i))));
    }
    return absl::OkStatus();
  }

  absl::Status Edit(const ir::Graph& graph, onnx::GraphProto& proto) {
    int i = 0;
    for (const ir::Node& node : graph.nodes())
      RETURN_IF_ERROR(Edit(node, *proto.mutable_node(i++)));
    for (i = 0; i < proto.output_size(); ++i)
      Rename(graph.outputs()[static_cast<size_t>(i)],
             *proto.mutable_output(i)->mutable_name());
    for (onnx::TensorProto& tensor : *proto.mutable_initializer()) {
      const ir::Value* value = graph.FindValue(tensor.name());
      if (value != nullptr && value->initializer() != nullptr)
        RETURN_IF_ERROR(Embed(*value->initializer(), tensor));
    }
    return absl::OkStatus();
  }

  // The part has no data files.
  absl::Status Embed(const ir::Tensor& tensor, onnx::TensorProto& proto) {
    if (!tensor.is_external()) return absl::OkStatus();
    ASSIGN_OR_RETURN(*proto.mutable_raw_data(),
                     part_.model->reader->Read(tensor));
    proto.clear_data_location();
    proto.clear_external_data();
    return absl::OkStatus();
  }

  void Rename(const ir::Value* value, std::string& name) const {
    const auto renamed = part_.names.find(value);
    if (renamed != part_.names.end()) name = renamed->second;
  }

  const ModelFile& file_;
  const ModelPart& part_;
};

// The functions that nodes call, and what those call.
class CalledFunctions {
 public:
  explicit CalledFunctions(const ir::Model& model) : model_(model) {}

  bool Has(const ir::Function& function) const {
    return called_.contains(&function);
  }
  void Add(const ir::Node& node) {
    for (const ir::Graph* graph : node.subgraphs()) Add(*graph);
    const ir::Function* function =
        model_.FindFunction(node.domain(), node.op_type(), node.overload);
    if (function != nullptr && called_.insert(function).second)
      Add(function->body);
  }

 private:
  void Add(const ir::Graph& graph) {
    for (const ir::Node& node : graph.nodes()) Add(node);
  }

  const ir::Model& model_;
  absl::flat_hash_set<const ir::Function*> called_;
};

}  // namespace

absl::StatusOr<std::string> SerializePart(const ModelFile& file,
                                          const ModelPart& part) {
  onnx::ModelProto model;
  model.set_ir_version(part.model->ir_version);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("part");
  NodeCopier nodes(file, part);
  CalledFunctions called(*part.model);
  for (const ir::Node* node : part.nodes) {
    RETURN_IF_ERROR(nodes.Copy(*node, *graph.add_node()));
    called.Add(*node);
  }
  for (const ir::Tensor& tensor : part.inputs)
    AddValueInfo(tensor, *graph.add_input());
  for (const ir::Tensor& tensor : part.outputs)
    AddValueInfo(tensor, *graph.add_output());
  for (const ir::Tensor& tensor : part.initializers)
    AddInitializer(tensor, *graph.add_initializer());
  for (const ir::Function& function : part.model->functions) {
    if (!called.Has(function)) continue;
    RETURN_IF_ERROR(ParseSource(file, function.source, *model.add_functions()));
  }
  std::string bytes = model.SerializeAsString();
  for (const ir::OpsetImport& import : part.model->opset_imports) {
    bytes +=
        OpsetImportField(import, onnx::ModelProto::kOpsetImportFieldNumber);
  }
  return bytes;
}

}  // namespace addnorm::proto
