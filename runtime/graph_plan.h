// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A graph made ready to run: nodes in an order that respects their operands, a
// slot for each value, the op or function of each node, and where each value
// dies.
//
// It does not know shapes: sizes are known when it runs. Values that a subgraph
// takes from outside (captures) are further inputs of it, and operands of the
// node that owns it.
//
//   ASSIGN_OR_RETURN(GraphPlan plan, MakeGraphPlan(model.graph));
#ifndef ADDNORM_RUNTIME_GRAPH_PLAN_H_
#define ADDNORM_RUNTIME_GRAPH_PLAN_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "passes/ir/model.h"
#include "runtime/op.h"

namespace addnorm::runtime {

// The place of a value in a run; kNoSlot for an absent operand or result.
using Slot = int32_t;
inline constexpr Slot kNoSlot = -1;

struct GraphPlan;

struct Step {
  const ir::Node* node = nullptr;
  int64_t opset = 0;  // version of the node's domain
  // One of them; neither if the runtime lacks the op: an error when it runs.
  const OpRow* op = nullptr;
  const ir::Function* function = nullptr;
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
  // In the order of node->subgraphs().
  std::vector<std::unique_ptr<GraphPlan>> subgraphs;
  // Values whose last use this is.
  std::vector<Slot> dying;
};

// Op, function and version of a node; nothing of its place in a graph.
Step StepOf(const ir::Node& node);

struct GraphPlan {
  const ir::Graph* graph = nullptr;
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
  absl::flat_hash_map<Slot, const ir::Tensor*> initializers;
  // Values of outer graphs that it or its subgraphs read.
  std::vector<std::pair<const ir::Value*, Slot>> captures;
  std::vector<Step> steps;
  absl::flat_hash_map<const ir::Value*, Slot> slots;

  Slot slot(const ir::Value* value) const;
};

// Errors: kUnimplemented for what the runtime cannot have (sparse
// initializers). Ops that it lacks are no error here.
absl::StatusOr<std::unique_ptr<GraphPlan>> MakeGraphPlan(
    const ir::Graph& graph);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_GRAPH_PLAN_H_
