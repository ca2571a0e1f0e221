// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/sort_nodes.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace addnorm::proto {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

template <typename Visit>
void ForEachGraph(onnx::NodeProto& node, Visit visit) {
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) visit(*attribute.mutable_g());
    for (auto& graph : *attribute.mutable_graphs()) visit(graph);
  }
}

// Recursion is bounded by protobuf's own limit of nesting.
void AddReads(onnx::NodeProto& node, std::vector<std::string_view>& names) {
  names.insert(names.end(), node.input().begin(), node.input().end());
  ForEachGraph(node, [&](onnx::GraphProto& graph) {
    for (auto& inner : *graph.mutable_node()) AddReads(inner, names);
    for (const auto& output : graph.output()) names.push_back(output.name());
  });
}

// The order of the nodes of one list: of those that can come next, the first.
class Order {
 public:
  explicit Order(Nodes& nodes)
      : readers_(static_cast<size_t>(nodes.size())),
        missing_(static_cast<size_t>(nodes.size())) {
    for (size_t i = 0; i < readers_.size(); ++i) {
      for (const auto& name : nodes[static_cast<int>(i)].output())
        makers_.emplace(name, i);
    }
    for (size_t i = 0; i < readers_.size(); ++i) {
      AddNode(nodes[static_cast<int>(i)], i);
    }
  }

  // Fewer than there are nodes if some are in a cycle.
  std::vector<size_t> Find();

 private:
  void AddNode(onnx::NodeProto& node, size_t index);

  absl::flat_hash_map<std::string_view, size_t> makers_;
  std::vector<std::vector<size_t>> readers_;
  std::vector<size_t> missing_;  // how much a node reads that is not made yet
};

void Order::AddNode(onnx::NodeProto& node, size_t index) {
  std::vector<std::string_view> names;
  AddReads(node, names);
  for (const std::string_view name : names) {
    const auto maker = makers_.find(name);
    if (name.empty() || maker == makers_.end()) continue;
    // What a subgraph makes under a name of its owner's results.
    if (maker->second == index) continue;
    readers_[maker->second].push_back(index);
    ++missing_[index];
  }
}

std::vector<size_t> Order::Find() {
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < missing_.size(); ++i) {
    if (missing_[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const size_t reader : readers_[order.back()]) {
      if (--missing_[reader] == 0) ready.push(reader);
    }
  }
  return order;
}

void Sort(Nodes& nodes) {
  const std::vector<size_t> order = Order(nodes).Find();
  if (order.size() < static_cast<size_t>(nodes.size()) ||
      std::is_sorted(order.begin(), order.end())) {
    return;
  }
  std::vector<size_t> place(order.size());  // of each node, as it is now
  std::vector<size_t> node(order.size());   // at each place
  std::iota(place.begin(), place.end(), 0);
  std::iota(node.begin(), node.end(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t from = place[order[i]];
    nodes.SwapElements(static_cast<int>(i), static_cast<int>(from));
    std::swap(node[i], node[from]);
    place[node[i]] = i;
    place[node[from]] = from;
  }
}

void SortAll(Nodes& nodes) {
  Sort(nodes);
  for (auto& node : nodes) {
    ForEachGraph(
        node, [](onnx::GraphProto& graph) { SortAll(*graph.mutable_node()); });
  }
}

}  // namespace

void SortNodes(onnx::ModelProto& model) {
  SortAll(*model.mutable_graph()->mutable_node());
  for (auto& function : *model.mutable_functions())
    SortAll(*function.mutable_node());
}

}  // namespace addnorm::proto
