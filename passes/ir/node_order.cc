// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/ir/node_order.h"

#include "absl/container/flat_hash_set.h"

namespace addnorm::ir {
namespace {

// Values that the node reads, those that its subgraphs take from outside
// included.
void CollectReads(const Node& node, std::vector<const Value*>& reads) {
  reads.insert(reads.end(), node.inputs().begin(), node.inputs().end());
  for (const Graph* graph : node.subgraphs()) {
    for (const Node& inner : graph->nodes()) CollectReads(inner, reads);
    reads.insert(reads.end(), graph->outputs().begin(), graph->outputs().end());
  }
}

std::vector<const Node*> ProducersOf(const Node& node) {
  std::vector<const Value*> reads;
  CollectReads(node, reads);
  std::vector<const Node*> producers;
  for (const Value* value : reads) {
    if (value != nullptr && value->graph() == node.graph() &&
        value->producer() != nullptr)
      producers.push_back(value->producer());
  }
  return producers;
}

}  // namespace

std::vector<const Node*> NodesInOrder(const Graph& graph) {
  struct Visit {
    const Node* node;
    std::vector<const Node*> producers;  // still to be looked at
  };
  std::vector<const Node*> ordered;
  ordered.reserve(graph.nodes().size());
  absl::flat_hash_set<const Node*> seen;
  std::vector<Visit> stack;
  const auto push = [&](const Node* node) {
    if (seen.insert(node).second) stack.push_back({node, ProducersOf(*node)});
  };
  for (const Node& node : graph.nodes()) {
    push(&node);
    while (!stack.empty()) {
      std::vector<const Node*>& producers = stack.back().producers;
      if (producers.empty()) {
        ordered.push_back(stack.back().node);
        stack.pop_back();
        continue;
      }
      const Node* producer = producers.back();
      producers.pop_back();
      push(producer);
    }
  }
  return ordered;
}

}  // namespace addnorm::ir
