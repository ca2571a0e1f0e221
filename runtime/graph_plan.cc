// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph_plan.h"

#include "fmt/format.h"
#include "passes/ir/node_order.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "runtime/op_table.h"

namespace addnorm::runtime {
namespace {

class Planner {
 public:
  explicit Planner(const ir::Graph& graph) : plan_(new GraphPlan) {
    plan_->graph = &graph;
  }

  absl::StatusOr<std::unique_ptr<GraphPlan>> Run();

 private:
  absl::Status AddOwnValues();
  absl::Status AddStep(const ir::Node& node);
  // The slot of a value, made where it has none yet; an outer one is captured.
  Slot SlotOf(const ir::Value* value);
  void FindDying();

  std::unique_ptr<GraphPlan> plan_;
};

Slot Planner::SlotOf(const ir::Value* value) {
  if (value == nullptr) return kNoSlot;
  const auto [it, added] =
      plan_->slots.try_emplace(value, static_cast<Slot>(plan_->slots.size()));
  if (added && value->graph() != plan_->graph)
    plan_->captures.emplace_back(value, it->second);
  return it->second;
}

absl::Status Planner::AddOwnValues() {
  for (const ir::Value* input : plan_->graph->inputs())
    plan_->inputs.push_back(SlotOf(input));
  for (const ir::Value* value : plan_->graph->values()) {
    if (value->is_sparse_initializer()) {
      return absl::UnimplementedError(
          fmt::format("value '{}': sparse initializers are not supported",
                      ir::Printable(value->name())));
    }
    if (value->initializer() != nullptr)
      plan_->initializers[SlotOf(value)] = value->initializer();
  }
  return absl::OkStatus();
}

absl::Status Planner::AddStep(const ir::Node& node) {
  Step& step = plan_->steps.emplace_back(StepOf(node));
  for (const ir::Value* input : node.inputs())
    step.inputs.push_back(SlotOf(input));
  for (const ir::Graph* graph : node.subgraphs()) {
    ASSIGN_OR_RETURN(step.subgraphs.emplace_back(), MakeGraphPlan(*graph));
    for (const auto& [value, slot] : step.subgraphs.back()->captures)
      SlotOf(value);
  }
  for (const ir::Value* output : node.outputs())
    step.outputs.push_back(SlotOf(output));
  return absl::OkStatus();
}

// From the last step to the first: what nobody has read further down dies here.
void Planner::FindDying() {
  std::vector<bool> live(plan_->slots.size());
  for (const Slot slot : plan_->outputs) live[slot] = true;
  const auto use = [&](Step& step, Slot slot) {
    if (slot == kNoSlot || live[slot]) return;
    live[slot] = true;
    step.dying.push_back(slot);
  };
  for (auto step = plan_->steps.rbegin(); step != plan_->steps.rend(); ++step) {
    for (const Slot slot : step->outputs) use(*step, slot);
    for (const Slot slot : step->inputs) use(*step, slot);
    for (const auto& graph : step->subgraphs) {
      for (const auto& [value, slot] : graph->captures)
        use(*step, SlotOf(value));
    }
  }
}

absl::StatusOr<std::unique_ptr<GraphPlan>> Planner::Run() {
  RETURN_IF_ERROR(AddOwnValues());
  for (const ir::Node* node : ir::NodesInOrder(*plan_->graph))
    RETURN_IF_ERROR(AddStep(*node));
  for (const ir::Value* output : plan_->graph->outputs())
    plan_->outputs.push_back(SlotOf(output));
  FindDying();
  return std::move(plan_);
}

}  // namespace

Step StepOf(const ir::Node& node) {
  Step step;
  step.node = &node;
  step.opset = ir::OpsetOf(node);
  step.function = node.graph()->model()->FindFunction(
      node.domain(), node.op_type(), node.overload);
  if (step.function == nullptr) step.op = FindOp(node.domain(), node.op_type());
  return step;
}

Slot GraphPlan::slot(const ir::Value* value) const {
  const auto it = slots.find(value);
  return it == slots.end() ? kNoSlot : it->second;
}

absl::StatusOr<std::unique_ptr<GraphPlan>> MakeGraphPlan(
    const ir::Graph& graph) {
  return Planner(graph).Run();
}

}  // namespace addnorm::runtime
