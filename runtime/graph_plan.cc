// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph_plan.h"

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
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
      plan_->initializers.emplace_back(SlotOf(value), value->initializer());
  }
  return absl::OkStatus();
}

// Values that the node reads, those that its subgraphs take from outside
// included.
void CollectReads(const ir::Node& node, std::vector<const ir::Value*>& reads) {
  reads.insert(reads.end(), node.inputs().begin(), node.inputs().end());
  for (const ir::Graph* graph : node.subgraphs()) {
    for (const ir::Node& inner : graph->nodes()) CollectReads(inner, reads);
    reads.insert(reads.end(), graph->outputs().begin(), graph->outputs().end());
  }
}

std::vector<const ir::Node*> ProducersOf(const ir::Node& node) {
  std::vector<const ir::Value*> reads;
  CollectReads(node, reads);
  std::vector<const ir::Node*> producers;
  for (const ir::Value* value : reads) {
    if (value != nullptr && value->graph() == node.graph() &&
        value->producer() != nullptr)
      producers.push_back(value->producer());
  }
  return producers;
}

// Each node after the nodes that it reads, else in file order. The importer has
// refused cycles.
std::vector<const ir::Node*> SortedNodes(const ir::Graph& graph) {
  struct Visit {
    const ir::Node* node;
    std::vector<const ir::Node*> producers;
  };
  std::vector<const ir::Node*> sorted;
  absl::flat_hash_set<const ir::Node*> seen;
  std::vector<Visit> stack;
  const auto push = [&](const ir::Node* node) {
    if (seen.insert(node).second) stack.push_back({node, ProducersOf(*node)});
  };
  for (const ir::Node& node : graph.nodes()) {
    push(&node);
    while (!stack.empty()) {
      std::vector<const ir::Node*>& producers = stack.back().producers;
      if (producers.empty()) {
        sorted.push_back(stack.back().node);
        stack.pop_back();
        continue;
      }
      const ir::Node* producer = producers.back();
      producers.pop_back();
      push(producer);
    }
  }
  return sorted;
}

int64_t OpsetOf(const ir::Graph& graph, std::string_view domain) {
  const auto& imports = graph.function() != nullptr
                            ? graph.function()->opset_imports
                            : graph.model()->opset_imports;
  for (const ir::OpsetImport& import : imports) {
    if (import.domain == domain) return import.version;
  }
  return 0;
}

absl::Status Planner::AddStep(const ir::Node& node) {
  Step& step = plan_->steps.emplace_back();
  step.node = &node;
  step.opset = OpsetOf(*plan_->graph, node.domain());
  step.function = plan_->graph->model()->FindFunction(
      node.domain(), node.op_type(), node.overload);
  if (step.function == nullptr) step.op = FindOp(node.domain(), node.op_type());
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
  for (const ir::Node* node : SortedNodes(*plan_->graph))
    RETURN_IF_ERROR(AddStep(*node));
  for (const ir::Value* output : plan_->graph->outputs())
    plan_->outputs.push_back(SlotOf(output));
  FindDying();
  return std::move(plan_);
}

}  // namespace

Slot GraphPlan::slot(const ir::Value* value) const {
  const auto it = slots.find(value);
  return it == slots.end() ? kNoSlot : it->second;
}

absl::StatusOr<std::unique_ptr<GraphPlan>> MakeGraphPlan(
    const ir::Graph& graph) {
  return Planner(graph).Run();
}

}  // namespace addnorm::runtime
