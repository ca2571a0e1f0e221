// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/rewriter.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "passes/constants.h"
#include "passes/ir/check.h"

namespace addnorm::passes {
namespace {

// The nodes of `graph` that a node depends on: producers of what it or its
// subgraphs read. Walks subgraphs with a stack, as they may be deep.
std::vector<ir::Node*> Dependencies(const ir::Node& node) {
  std::vector<ir::Node*> producers;
  const ir::Graph* graph = node.graph();
  const auto add = [&](const ir::Value* value) {
    if (value == nullptr || value->graph() != graph ||
        value->producer() == nullptr)
      return;
    if (value->producer() != &node) producers.push_back(value->producer());
  };
  for (const ir::Value* value : node.inputs()) add(value);
  std::vector<ir::Graph*> inner = node.subgraphs();
  while (!inner.empty()) {
    const ir::Graph* subgraph = inner.back();
    inner.pop_back();
    for (const ir::Value* output : subgraph->outputs()) add(output);
    for (const ir::Node& inside : subgraph->nodes()) {
      for (const ir::Value* value : inside.inputs()) add(value);
      for (ir::Graph* deeper : inside.subgraphs()) inner.push_back(deeper);
    }
  }
  return producers;
}

// The node of `graph` that a reader is, or is inside of.
const ir::Node* NodeInGraph(const ir::Node* reader, const ir::Graph* graph) {
  while (reader->graph() != graph) reader = reader->graph()->owner();
  return reader;
}

// The nodes, each after what it reads; the earliest in the list first.
std::vector<ir::Node*> InOrder(ir::Graph& graph) {
  absl::flat_hash_map<ir::Node*, int> missing;
  absl::flat_hash_map<ir::Node*, std::vector<ir::Node*>> readers;
  const auto later = [](const ir::Node* a, const ir::Node* b) {
    return a->order > b->order;
  };
  std::priority_queue<ir::Node*, std::vector<ir::Node*>, decltype(later)> ready(
      later);
  for (ir::Node& node : graph.nodes()) {
    const std::vector<ir::Node*> producers = Dependencies(node);
    missing[&node] = static_cast<int>(producers.size());
    for (ir::Node* producer : producers) readers[producer].push_back(&node);
    if (producers.empty()) ready.push(&node);
  }
  std::vector<ir::Node*> sorted;
  while (!ready.empty()) {
    ir::Node* node = ready.top();
    ready.pop();
    sorted.push_back(node);
    for (ir::Node* reader : readers[node]) {
      if (--missing[reader] == 0) ready.push(reader);
    }
  }
  ADDNORM_CHECK(sorted.size() == graph.nodes().size(),
                "a graph with a cycle cannot be sorted");
  return sorted;
}

bool IsReturnedByInnerGraph(const ir::Value& value) {
  const auto& outputs = value.graph()->outputs();
  return std::count(outputs.begin(), outputs.end(), &value) <
         value.output_count();
}

// Operands that stand after the root with at most so many nodes behind them
// stay, and the call goes after them.
constexpr size_t kMaxLateNodes = 8;

}  // namespace

bool IsSorted(const ir::Graph& graph) {
  absl::flat_hash_set<const ir::Node*> seen;
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::Node* producer : Dependencies(node)) {
      if (!seen.contains(producer)) return false;
    }
    seen.insert(&node);
  }
  return true;
}

void Rewriter::Number(ir::Graph& graph) {
  graph.NumberNodes();
  if (IsSorted(graph)) return;
  double order = 0;
  for (ir::Node* node : InOrder(graph)) node->order = order++;
}

void Rewriter::Sort(ir::Graph& graph) {
  graph.NumberNodes();
  if (IsSorted(graph)) return;
  graph.MoveNodes(InOrder(graph), nullptr);
  graph.NumberNodes();
}

std::optional<Place> Rewriter::FindPlace(const CallReplacement& call) const {
  const ir::Graph& graph = *call.root->graph();
  const absl::flat_hash_set<const ir::Node*> inside(call.nodes.begin(),
                                                    call.nodes.end());

  // What the operands need that stands after the root.
  std::vector<ir::Node*> late;
  absl::flat_hash_set<const ir::Node*> visited;
  std::vector<ir::Node*> stack;
  for (const ir::Value* operand : call.operands) {
    if (operand->producer() != nullptr && operand->graph() == &graph) {
      stack.push_back(operand->producer());
    }
  }
  while (!stack.empty()) {
    ir::Node* node = stack.back();
    stack.pop_back();
    if (inside.contains(node)) return std::nullopt;
    if (node->order < call.root->order || !visited.insert(node).second)
      continue;
    late.push_back(node);
    for (ir::Node* producer : Dependencies(*node)) stack.push_back(producer);
  }
  if (late.empty()) return Place{call.root, {}};

  const auto before = [](const ir::Node* a, const ir::Node* b) {
    return a->order < b->order;
  };
  std::sort(late.begin(), late.end(), before);
  double first_reader = std::numeric_limits<double>::infinity();
  for (const ir::Value* result : call.results) {
    if (result == nullptr) continue;
    // A subgraph that returns it: where that stands is not recorded.
    if (IsReturnedByInnerGraph(*result)) first_reader = call.root->order;
    for (const ir::Use& use : result->uses()) {
      const ir::Node* reader = NodeInGraph(use.node, &graph);
      if (!inside.contains(reader))
        first_reader = std::min(first_reader, reader->order);
    }
  }
  // A long chain moves: then other sites that need it find it in front of them.
  const bool is_short = late.size() <= kMaxLateNodes;
  if (is_short && late.back()->order < first_reader) {
    return Place{graph.Next(late.back()), {}};
  }
  return Place{call.root, std::move(late)};
}

ir::Node* Rewriter::ReplaceByCall(CallReplacement call, const Place& place) {
  ir::Graph& graph = *call.root->graph();
  ir::Node* before = place.before;
  graph.MoveNodes(place.earlier, call.root);
  const absl::flat_hash_set<const ir::Node*> inside(call.nodes.begin(),
                                                    call.nodes.end());

  ir::Node* made =
      graph.AddNode(std::move(call.domain), std::move(call.op_type), before);
  made->name = call.root->name;
  made->inherits_from = call.root->source;
  made->attributes = std::move(call.attributes);
  for (ir::Value* operand : call.operands) graph.AddNodeInput(made, operand);

  std::vector<ir::Value*> left_over;
  for (ir::Node* node : call.nodes) {
    left_over.insert(left_over.end(), node->inputs().begin(),
                     node->inputs().end());
    left_over.insert(left_over.end(), node->outputs().begin(),
                     node->outputs().end());
  }
  for (ir::Node* node : call.nodes) graph.EraseNode(node);
  for (ir::Value* result : call.results) {
    const bool is_kept =
        result != nullptr &&
        (result == call.results.front() || !result->uses().empty() ||
         result->is_graph_output() || result->is_pinned());
    graph.AddNodeOutput(made, is_kept ? result : nullptr);
  }
  std::sort(left_over.begin(), left_over.end(), std::less<>());
  left_over.erase(std::unique(left_over.begin(), left_over.end()),
                  left_over.end());
  for (ir::Value* value : left_over) {
    if (value != nullptr) EraseIfUnused(value);
  }
  return made;
}

void Rewriter::EraseIfUnused(ir::Value* value) {
  std::vector<ir::Value*> stack{value};
  while (!stack.empty()) {
    ir::Value* top = stack.back();
    stack.pop_back();
    // An erased value has no graph; an input without its initializer would have
    // to be given.
    if (top->graph() == nullptr || !top->uses().empty() ||
        top->is_graph_output() || top->is_pinned() || top->is_input()) {
      continue;
    }
    ir::Graph& graph = *top->graph();
    if (ir::Node* producer = top->producer()) {
      if (!producer->Is("", "Constant") &&
          !IsConstantForwarding(model_, *producer))
        continue;
      for (ir::Value* input : producer->inputs()) {
        if (input != nullptr) stack.push_back(input);
      }
      graph.EraseNode(producer);
    }
    graph.EraseValue(top);
  }
}

void Rewriter::AddFunction(std::list<ir::Function> function) {
  const auto calls = [&](const ir::Function& callee) {
    const auto& nodes = function.front().body.nodes();
    return std::any_of(nodes.begin(), nodes.end(), [&](const ir::Node& node) {
      return node.Is(callee.domain, callee.name) &&
             node.overload == callee.overload;
    });
  };
  const auto last_callee =
      std::find_if(model_.functions.rbegin(), model_.functions.rend(), calls);
  model_.functions.splice(last_callee.base(), function);
}

void Rewriter::ImportDomain(const ir::Graph& graph, const std::string& domain,
                            int64_t version) {
  const auto import_into = [&](std::vector<ir::OpsetImport>& imports) {
    const bool is_known = std::any_of(
        imports.begin(), imports.end(),
        [&](const auto& import) { return import.domain == domain; });
    if (!is_known) imports.push_back({domain, version, true});
  };
  import_into(model_.opset_imports);
  if (graph.function() != nullptr) import_into(graph.function()->opset_imports);
}

}  // namespace addnorm::passes
