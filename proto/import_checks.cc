// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/import_checks.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"

namespace addnorm::proto {
namespace {

constexpr size_t kMaxNamed = 6;  // of a cycle's members, in a message

std::string Chain(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMaxNamed; ++i) {
    text += (i == 0 ? "" : " -> ") + ir::Printable(names[i]);
  }
  return text + (names.size() > kMaxNamed ? " -> …" : "");
}

// The order in which nodes of one graph feed each other, as edges between their
// numbers. A node depends on what graphs in its attributes read, too.
class NodeOrder {
 public:
  using Edge = std::pair<size_t, size_t>;

  explicit NodeOrder(const ir::Graph& graph) : graph_(graph) {
    for (const ir::Node& node : graph.nodes()) nodes_.push_back(&node);
  }

  void AddUses() {
    for (const ir::Node* node : nodes_) {
      for (const ir::Value* value : node->outputs()) {
        if (value == nullptr) continue;
        for (const ir::Use& use : value->uses()) AddEdge(*node, use.node);
      }
    }
  }

  void AddEdge(const ir::Node& from, const ir::Node* to) {
    while (to->graph() != &graph_) to = to->graph()->owner();
    edges_.emplace_back(Number(from), Number(*to));
  }

  absl::Status Check() {
    const bool is_sorted =
        std::all_of(edges_.begin(), edges_.end(),
                    [](const Edge& edge) { return edge.first < edge.second; });
    if (is_sorted) return absl::OkStatus();
    const std::vector<size_t> missing = RemoveReady();
    const auto stuck = std::find_if(missing.begin(), missing.end(),
                                    [](size_t n) { return n > 0; });
    if (stuck == missing.end()) return absl::OkStatus();
    return InvalidModel(
        "graph '{}': nodes form a cycle: {}", ir::Printable(graph_.name),
        Chain(Cycle(missing, static_cast<size_t>(stuck - missing.begin()))));
  }

 private:
  static size_t Number(const ir::Node& node) {
    return static_cast<size_t>(node.order);
  }

  // For each node, how many edges into it are left when every node that can be
  // computed has been.
  std::vector<size_t> RemoveReady() {
    std::sort(edges_.begin(), edges_.end());
    std::vector<size_t> missing(nodes_.size(), 0);
    for (const Edge& edge : edges_) ++missing[edge.second];
    std::vector<size_t> ready;
    for (size_t i = 0; i < missing.size(); ++i) {
      if (missing[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      const size_t from = ready.back();
      ready.pop_back();
      for (auto edge =
               std::lower_bound(edges_.begin(), edges_.end(), Edge(from, 0));
           edge != edges_.end() && edge->first == from; ++edge) {
        if (--missing[edge->second] == 0) ready.push_back(edge->second);
      }
    }
    return missing;
  }

  // Every stuck node has a stuck predecessor, so going backwards ends in a
  // cycle.
  std::vector<std::string> Cycle(const std::vector<size_t>& missing,
                                 size_t start) const {
    std::vector<size_t> before(nodes_.size(), 0);
    for (const auto& [from, to] : edges_) {
      if (missing[from] > 0 && missing[to] > 0) before[to] = from;
    }
    std::vector<bool> seen(nodes_.size(), false);
    size_t at = start;
    for (; !seen[at]; at = before[at]) seen[at] = true;
    std::vector<std::string> names = {nodes_[at]->Describe()};
    for (size_t i = before[at]; i != at; i = before[i])
      names.push_back(nodes_[i]->Describe());
    names.push_back(names.front());
    std::reverse(names.begin(), names.end());
    return names;
  }

  const ir::Graph& graph_;
  std::vector<const ir::Node*> nodes_;
  std::vector<Edge> edges_;
};

using FunctionKey =
    std::tuple<std::string_view, std::string_view, std::string_view>;
using Callees = std::vector<const ir::Function*>;

std::string Name(const ir::Function& function) {
  return (function.domain.empty() ? "" : function.domain + "::") +
         function.name;
}

using FunctionMap = absl::flat_hash_map<FunctionKey, const ir::Function*>;

Callees CalleesOf(const ir::Function& function, const FunctionMap& functions) {
  Callees callees;
  std::vector<const ir::Graph*> graphs = {&function.body};
  while (!graphs.empty()) {
    const ir::Graph* graph = graphs.back();
    graphs.pop_back();
    for (const ir::Node& node : graph->nodes()) {
      const auto callee =
          functions.find({node.domain(), node.op_type(), node.overload});
      if (callee != functions.end()) callees.push_back(callee->second);
      for (const ir::Graph* inner : node.subgraphs()) graphs.push_back(inner);
    }
  }
  return callees;
}

struct Call {
  const ir::Function* function;
  Callees callees;
  size_t next = 0;
};

absl::Status Recursion(const std::vector<Call>& stack,
                       const ir::Function* callee) {
  std::vector<std::string> names;
  for (const Call& call : stack) {
    if (call.function == callee || !names.empty())
      names.push_back(Name(*call.function));
  }
  names.push_back(Name(*callee));
  return InvalidModel("function '{}' calls itself: {}",
                      ir::Printable(Name(*callee)), Chain(names));
}

}  // namespace

absl::Status CheckAcyclic(ir::Model& model) {
  // Outer values that inner graphs return: nodes that read them have no use
  // that says so.
  absl::flat_hash_map<const ir::Graph*,
                      std::vector<std::pair<const ir::Node*, const ir::Node*>>>
      returned;
  const std::vector<ir::Graph*> graphs = model.AllGraphs();
  for (const ir::Graph* graph : graphs) {
    for (const ir::Value* value : graph->outputs()) {
      if (value->graph() == graph || value->producer() == nullptr) continue;
      returned[value->graph()].emplace_back(value->producer(), graph->owner());
    }
  }
  for (const ir::Graph* graph : graphs) {
    NodeOrder order(*graph);
    order.AddUses();
    for (const auto& [maker, reader] : returned[graph])
      order.AddEdge(*maker, reader);
    RETURN_IF_ERROR(order.Check());
  }
  return absl::OkStatus();
}

absl::Status CheckFunctions(ir::Model& model) {
  FunctionMap functions;
  for (const ir::Function& f : model.functions) {
    if (!functions.emplace(FunctionKey(f.domain, f.name, f.overload), &f)
             .second) {
      return InvalidModel("function '{}' is defined twice",
                          ir::Printable(Name(f)));
    }
  }
  absl::flat_hash_map<const ir::Function*, bool>
      is_open;  // absent: not yet visited
  for (const ir::Function& root : model.functions) {
    if (!is_open.emplace(&root, true).second) continue;
    std::vector<Call> stack;
    stack.push_back({&root, CalleesOf(root, functions)});
    while (!stack.empty()) {
      Call& call = stack.back();
      if (call.next == call.callees.size()) {
        is_open[call.function] = false;
        stack.pop_back();
        continue;
      }
      const ir::Function* callee = call.callees[call.next++];
      const auto [seen, is_new] = is_open.emplace(callee, true);
      if (is_new) {
        stack.push_back({callee, CalleesOf(*callee, functions)});
      } else if (seen->second) {
        return Recursion(stack, callee);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace addnorm::proto
