// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/ir/expanded_size.h"

#include <algorithm>

namespace addnorm::ir {
namespace {

// Deeper calls are nobody's model; the walk is recursive.
constexpr int kMaxDepth = 200;

}  // namespace

int64_t ExpandedSizes::Of(const Graph& graph, int depth) {
  int64_t size = 0;
  for (const Node& node : graph.nodes()) {
    ++size;
    for (const Graph* inner : node.subgraphs()) size += Of(*inner, depth);
    const Function* function =
        model_.functions.empty()
            ? nullptr
            : model_.FindFunction(node.domain(), node.op_type(), node.overload);
    if (function != nullptr) size += Of(*function, depth + 1);
    size = std::min(size, kMost);
  }
  return size;
}

int64_t ExpandedSizes::Of(const Function& function, int depth) {
  if (depth > kMaxDepth) return kMost;
  // What it calls finds the largest size if that is itself.
  const auto [known, added] = functions_.try_emplace(&function, kMost);
  if (!added) return known->second;
  const int64_t size = Of(function.body, depth);
  functions_[&function] = size;
  return size;
}

}  // namespace addnorm::ir
