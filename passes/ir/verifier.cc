// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/ir/verifier.h"

#include <algorithm>

#include "fmt/format.h"

namespace addnorm::ir {
namespace {

absl::Status Broken(const Node& node, std::string_view what) {
  return absl::InternalError(fmt::format("IR: {}: {}", node.Describe(), what));
}

bool IsVisible(const Graph& from, const Graph* owner) {
  for (const Graph* graph = &from; graph != nullptr; graph = graph->outer()) {
    if (graph == owner) return true;
  }
  return false;
}

absl::Status VerifyInputs(const Node& node) {
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const Value* value = node.inputs()[i];
    if (value == nullptr) continue;
    const Use use{const_cast<Node*>(&node), static_cast<int>(i)};
    if (std::count(value->uses().begin(), value->uses().end(), use) != 1) {
      return Broken(node, fmt::format("use {} of '{}' is not registered once",
                                      i, value->name()));
    }
    if (!IsVisible(*node.graph(), value->graph())) {
      return Broken(node,
                    fmt::format("'{}' is not visible here", value->name()));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyOutputs(const Node& node) {
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const Value* value = node.outputs()[i];
    if (value == nullptr) continue;
    if (value->producer() != &node ||
        value->producer_index() != static_cast<int>(i)) {
      return Broken(node,
                    fmt::format("'{}' has another producer", value->name()));
    }
    if (value->graph() != node.graph()) {
      return Broken(
          node, fmt::format("'{}' belongs to another graph", value->name()));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyCall(const Model& model, const Node& node) {
  const Function* function =
      model.FindFunction(node.domain(), node.op_type(), node.overload);
  if (function == nullptr || function->source != kNoSource)
    return absl::OkStatus();
  if (function->body.inputs().size() != node.inputs().size() ||
      function->body.outputs().size() != node.outputs().size()) {
    return Broken(node,
                  "call and function disagree in number of inputs or outputs");
  }
  return absl::OkStatus();
}

absl::Status VerifyGraph(const Model& model, const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.graph() != &graph) return Broken(node, "belongs to another graph");
    for (const absl::Status& status :
         {VerifyInputs(node), VerifyOutputs(node), VerifyCall(model, node)}) {
      if (!status.ok()) return status;
    }
  }
  for (const Value* value : graph.values()) {
    for (const Use& use : value->uses()) {
      if (use.node->input(static_cast<size_t>(use.index)) != value) {
        return Broken(*use.node,
                      fmt::format("does not read '{}'", value->name()));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Verify(Model& model) {
  for (const Graph* graph : model.AllGraphs()) {
    if (absl::Status status = VerifyGraph(model, *graph); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

}  // namespace addnorm::ir
