// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// An order in which a graph's nodes can run. Reads only; Rewriter::Sort is what
// moves nodes.
//
//   for (const ir::Node* node : ir::NodesInOrder(graph)) Run(*node);
#ifndef ADDNORM_PASSES_IR_NODE_ORDER_H_
#define ADDNORM_PASSES_IR_NODE_ORDER_H_

#include <vector>

#include "passes/ir/graph.h"

namespace addnorm::ir {

// Each node after the nodes that it, or a subgraph of it, reads; else as in the
// graph's list. The graph must have no cycle: the importer refuses them.
std::vector<const Node*> NodesInOrder(const Graph& graph);

}  // namespace addnorm::ir

#endif  // ADDNORM_PASSES_IR_NODE_ORDER_H_
