// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/infer_types.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "google/protobuf/arena.h"
#include "onnx/shape_inference/implementation.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/import_type.h"
#include "proto/skeleton.h"
#include "proto/sort_nodes.h"

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

// Beyond what any model has; a shape of a broken one may have any length.
constexpr int64_t kMostDims = 64;

using TypesByName =
    absl::flat_hash_map<std::string_view, const onnx::TypeProto*>;

TypesByName TypesOf(const onnx::GraphProto& graph) {
  TypesByName types;
  for (const auto& input : graph.input()) types[input.name()] = &input.type();
  for (const auto& info : graph.value_info()) types[info.name()] = &info.type();
  return types;
}

// Of a graph's value, or of one that it captures; nullptr if it is not known.
const onnx::TypeProto* TypeOf(const std::string& name, const TypesByName& own,
                              const TypesByName& outer) {
  const auto inner = own.find(name);
  if (inner != own.end()) return inner->second;
  const auto captured = outer.find(name);
  return captured == outer.end() ? nullptr : captured->second;
}

// The length of a vector; -1 if it is none, or not known.
int64_t LengthOf(const onnx::TypeProto& type) {
  if (!type.tensor_type().has_shape()) return -1;
  const onnx::TensorShapeProto& shape = type.tensor_type().shape();
  if (shape.dim_size() != 1 || !shape.dim(0).has_dim_value()) return -1;
  return shape.dim(0).dim_value();
}

bool IsReshape(const onnx::NodeProto& node) {
  return node.op_type() == "Reshape" && node.input_size() == 2 &&
         node.output_size() == 1 &&
         (node.domain().empty() || node.domain() == "ai.onnx");
}

// Before opset 14, ONNX does not infer that what is reshaped to a computed
// shape has as many dims as the shape has elements. True if a rank was added.
bool AddRanksOfReshapes(const TypesByName& main, onnx::GraphProto& graph) {
  const TypesByName own = TypesOf(graph);
  absl::flat_hash_map<std::string_view, int64_t> ranks;
  for (const onnx::NodeProto& node : graph.node()) {
    if (!IsReshape(node)) continue;
    const onnx::TypeProto* shape = TypeOf(node.input(1), own, main);
    const int64_t rank = shape == nullptr ? -1 : LengthOf(*shape);
    if (rank >= 0 && rank <= kMostDims) ranks[node.output(0)] = rank;
  }
  bool added = false;
  for (auto& info : *graph.mutable_value_info()) {
    const auto rank = ranks.find(info.name());
    // Without an element type there is nothing that a shape can be added to.
    if (rank == ranks.end() || !info.type().has_tensor_type()) continue;
    onnx::TypeProto::Tensor& tensor =
        *info.mutable_type()->mutable_tensor_type();
    if (tensor.has_shape()) continue;
    tensor.mutable_shape();
    for (int64_t i = 0; i < rank->second; ++i)
      tensor.mutable_shape()->add_dim();
    added = true;
  }
  return added;
}

// Inference expands every call, so functions that call functions twice each
// take it exponentially long. So many expansions take it about half a second.
constexpr uint64_t kMaxExpansions = 100'000;

// How many calls are expanded where a function is, itself included; calls are
// acyclic, since the importer refuses others.
class Expansions {
 public:
  explicit Expansions(const ir::Model& model) : model_(model) {}

  uint64_t Of(const ir::Graph& graph) {
    uint64_t total = 0;
    for (const ir::Function* callee : Callees(graph))
      total = std::min(kMaxExpansions + 1, total + OfFunction(callee));
    return total;
  }

 private:
  // Callees first, without recursion: calls may be nested as deep as there are
  // functions.
  uint64_t OfFunction(const ir::Function* function) {
    std::vector<const ir::Function*> stack = {function};
    while (!stack.empty()) {
      const ir::Function* top = stack.back();
      const size_t depth = stack.size();
      uint64_t total = 1;
      if (!counts_.contains(top)) {
        for (const ir::Function* callee : Callees(top->body)) {
          const auto known = counts_.find(callee);
          if (known == counts_.end()) {
            stack.push_back(callee);
          } else {
            total = std::min(kMaxExpansions + 1, total + known->second);
          }
        }
      }
      if (stack.size() > depth) continue;
      counts_.emplace(top, total);
      stack.pop_back();
    }
    return counts_.at(function);
  }

  std::vector<const ir::Function*> Callees(const ir::Graph& graph) const {
    std::vector<const ir::Function*> callees;
    std::vector<const ir::Graph*> graphs = {&graph};
    while (!graphs.empty()) {
      const ir::Graph* top = graphs.back();
      graphs.pop_back();
      for (const ir::Node& node : top->nodes()) {
        for (const ir::Graph* inner : node.subgraphs()) graphs.push_back(inner);
        const ir::Function* callee =
            model_.FindFunction(node.domain(), node.op_type(), node.overload);
        if (callee != nullptr) callees.push_back(callee);
      }
    }
    return callees;
  }

  const ir::Model& model_;
  absl::flat_hash_map<const ir::Function*, uint64_t> counts_;
};

// Inference gives each inner graph a copy of all names of the graphs around it.
// So many take it about two seconds.
constexpr uint64_t kMaxCopiedNames = 100'000'000;

uint64_t CopiedNames(ir::Model& model) {
  absl::flat_hash_map<const ir::Graph*, uint64_t> names;
  uint64_t copied = 0;
  // Outer graphs come before inner ones.
  for (const ir::Graph* graph : model.AllGraphs()) {
    const uint64_t outer =
        graph->outer() == nullptr ? 0 : names[graph->outer()];
    copied += outer;
    names[graph] = outer + graph->values().size();
  }
  return copied;
}

// Graphs of the skeleton and of the IR that are the same.
using Pair = std::pair<onnx::GraphProto*, ir::Graph*>;

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
void AddInnerPairs(onnx::GraphProto& proto, ir::Graph& graph,
                   std::vector<Pair>& pairs) {
  auto node = graph.nodes().begin();
  for (onnx::NodeProto& node_proto : *proto.mutable_node()) {
    if (node == graph.nodes().end()) return;
    size_t next = 0;
    const std::vector<ir::Graph*> inner = node->subgraphs();
    const auto add = [&](onnx::GraphProto& g) {
      if (next < inner.size()) pairs.emplace_back(&g, inner[next++]);
    };
    for (auto& attribute : *node_proto.mutable_attribute()) {
      if (attribute.has_g()) add(*attribute.mutable_g());
      for (auto& g : *attribute.mutable_graphs()) add(g);
    }
    ++node;
  }
}

// Of a skeleton that is not sorted yet.
std::vector<Pair> AllPairs(onnx::ModelProto& skeleton, ir::Model& model) {
  std::vector<Pair> pairs = {{skeleton.mutable_graph(), &model.graph}};
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [proto, graph] = pairs[i];
    AddInnerPairs(*proto, *graph, pairs);
  }
  return pairs;
}

}  // namespace

absl::Status InferTypes(const ModelFile& file, ir::Model& model) {
  if (Expansions(model).Of(model.graph) > kMaxExpansions) {
    return absl::UnimplementedError(
        fmt::format("{}: functions call each other more than {} times: types "
                    "are not inferred",
                    file.name(), kMaxExpansions));
  }
  if (CopiedNames(model) > kMaxCopiedNames) {
    return absl::UnimplementedError(fmt::format(
        "{}: too many graphs are in large ones: types are not inferred",
        file.name()));
  }
  google::protobuf::Arena arena;
  auto* skeleton =
      google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
  RETURN_IF_ERROR(ParseSkeleton(file, *skeleton));
  MarkLeftOut(*skeleton->mutable_graph());
  const std::vector<Pair> pairs = AllPairs(*skeleton, model);
  SortNodes(*skeleton);
  // What was found before a failure is in the skeleton, and is as good.
  absl::Status status = RunInference(*skeleton);
  const TypesByName main = TypesOf(skeleton->graph());
  bool has_more = false;
  for (const auto& [proto, graph] : pairs)
    has_more = AddRanksOfReshapes(main, *proto) || has_more;
  if (has_more) status = RunInference(*skeleton);
  for (const auto& [proto, graph] : pairs) TakeTypes(*proto, *graph);
  return WithContext(status, file.name());
}

}  // namespace addnorm::proto
