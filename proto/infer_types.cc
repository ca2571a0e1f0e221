// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/infer_types.h"

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "google/protobuf/arena.h"
#include "onnx/shape_inference/implementation.h"
#include "proto/errors.h"
#include "proto/import_type.h"
#include "proto/skeleton.h"
#include "proto/status_macros.h"

namespace addnorm::proto {
namespace {

// Tensors that were left out of the skeleton must not look like broken ones.
void MarkExternal(onnx::TensorProto& tensor) {
  const bool has_data =
      tensor.has_raw_data() || tensor.float_data_size() > 0 ||
      tensor.int32_data_size() > 0 || tensor.string_data_size() > 0 ||
      tensor.int64_data_size() > 0 || tensor.double_data_size() > 0 ||
      tensor.uint64_data_size() > 0;
  if (!has_data) tensor.set_data_location(onnx::TensorProto::EXTERNAL);
}

// Recursion is bounded by protobuf's own limit of nesting.
void MarkLeftOut(onnx::GraphProto& graph) {
  for (auto& tensor : *graph.mutable_initializer()) MarkExternal(tensor);
  for (auto& node : *graph.mutable_node()) {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) MarkExternal(*attribute.mutable_t());
      for (auto& tensor : *attribute.mutable_tensors()) MarkExternal(tensor);
      if (attribute.has_g()) MarkLeftOut(*attribute.mutable_g());
      for (auto& inner : *attribute.mutable_graphs()) MarkLeftOut(inner);
    }
  }
}

absl::Status RunInference(onnx::ModelProto& model) {
  try {
    onnx::shape_inference::InferShapes(model,
                                       onnx::OpSchemaRegistry::Instance(),
                                       onnx::ShapeInferenceOptions{});
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        fmt::format("shape inference failed: {}", error.what()));
  }
  return absl::OkStatus();
}

// Graphs of the skeleton and of the IR that are the same.
using Pair = std::pair<const onnx::GraphProto*, ir::Graph*>;

void TakeTypes(const onnx::GraphProto& proto, ir::Graph& graph) {
  const auto take = [&](const onnx::ValueInfoProto& info) {
    if (ir::Value* value = graph.FindValue(info.name()))
      Refine(value->type, ImportType(info.type()));
  };
  for (const auto& info : proto.value_info()) take(info);
  for (const auto& output : proto.output()) take(output);
}

// The graphs in attributes of corresponding nodes. Nodes are in the order of
// the file in both, since no pass has run.
void AddInnerPairs(const onnx::GraphProto& proto, ir::Graph& graph,
                   std::vector<Pair>& pairs) {
  auto node = graph.nodes().begin();
  for (const onnx::NodeProto& node_proto : proto.node()) {
    if (node == graph.nodes().end()) return;
    size_t next = 0;
    const std::vector<ir::Graph*> inner = node->subgraphs();
    const auto add = [&](const onnx::GraphProto& g) {
      if (next < inner.size()) pairs.emplace_back(&g, inner[next++]);
    };
    for (const auto& attribute : node_proto.attribute()) {
      if (attribute.has_g()) add(attribute.g());
      for (const auto& g : attribute.graphs()) add(g);
    }
    ++node;
  }
}

}  // namespace

absl::Status InferTypes(const ModelFile& file, ir::Model& model) {
  google::protobuf::Arena arena;
  auto* skeleton =
      google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
  RETURN_IF_ERROR(ParseSkeleton(file, *skeleton));
  MarkLeftOut(*skeleton->mutable_graph());
  // What was found before a failure is in the skeleton, and is as good.
  const absl::Status status = RunInference(*skeleton);
  std::vector<Pair> pairs = {{&skeleton->graph(), &model.graph}};
  while (!pairs.empty()) {
    const auto [proto, graph] = pairs.back();
    pairs.pop_back();
    TakeTypes(*proto, *graph);
    AddInnerPairs(*proto, *graph, pairs);
  }
  return WithContext(status, file.name());
}

}  // namespace addnorm::proto
