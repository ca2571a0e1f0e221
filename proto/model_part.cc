// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/model_part.h"

#include "fmt/format.h"
#include "onnx/onnx_pb.h"
#include "passes/ir/status_macros.h"
#include "proto/serialize.h"

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

absl::Status AddNode(const ModelFile& file, const ModelPart& part,
                     const ir::Node& node, onnx::GraphProto& graph) {
  if (!node.subgraphs().empty()) {
    return absl::UnimplementedError(
        fmt::format("{} has graphs, which are not copied", node.Describe()));
  }
  ASSIGN_OR_RETURN(const std::string field,
                   NodeField(file, node, onnx::GraphProto::kNodeFieldNumber));
  if (!graph.MergeFromString(field))
    return absl::InternalError("a node that does not parse");
  onnx::NodeProto& added = *graph.mutable_node(graph.node_size() - 1);
  for (int i = 0; i < added.input_size(); ++i) {
    const auto name = part.names.find(node.input(static_cast<size_t>(i)));
    if (name != part.names.end()) added.set_input(i, name->second);
  }
  for (int i = 0; i < added.output_size(); ++i) {
    const auto name = part.names.find(node.output(static_cast<size_t>(i)));
    if (name != part.names.end()) added.set_output(i, name->second);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> SerializePart(const ModelFile& file,
                                          const ModelPart& part) {
  onnx::ModelProto model;
  model.set_ir_version(part.model->ir_version);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("part");
  for (const ir::Node* node : part.nodes)
    RETURN_IF_ERROR(AddNode(file, part, *node, graph));
  for (const ir::Tensor& tensor : part.inputs)
    AddValueInfo(tensor, *graph.add_input());
  for (const ir::Tensor& tensor : part.outputs)
    AddValueInfo(tensor, *graph.add_output());
  for (const ir::Tensor& tensor : part.initializers)
    AddInitializer(tensor, *graph.add_initializer());
  std::string bytes = model.SerializeAsString();
  for (const ir::OpsetImport& import : part.model->opset_imports) {
    bytes +=
        OpsetImportField(import, onnx::ModelProto::kOpsetImportFieldNumber);
  }
  for (const ir::Function& function : part.model->functions) {
    ASSIGN_OR_RETURN(const std::string field, FunctionField(function));
    bytes += field;
  }
  return bytes;
}

}  // namespace addnorm::proto
