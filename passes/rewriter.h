// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The edits that passes make, each keeping the IR's invariants. Passes do not
// call Graph's editing functions themselves.
//
// It decides where a node can stand (after what it reads, before what reads
// it), and removes constants only when the last reader went. It does not decide
// whether a rewrite is right.
//
//   Rewriter rewriter(model);
//   if (auto place = rewriter.FindPlace(call)) rewriter.ReplaceByCall(call,
//   *place);
#ifndef ADDNORM_PASSES_REWRITER_H_
#define ADDNORM_PASSES_REWRITER_H_

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "passes/ir/model.h"

namespace addnorm::passes {

// Nodes of one graph that become one call of a function.
struct CallReplacement {
  ir::Node* root = nullptr;          // the call takes its place and name
  std::vector<ir::Node*> nodes;      // to be erased, the root included
  std::vector<ir::Value*> operands;  // of the call
  // Values of `nodes` that the call makes from now on, nullptr for an absent
  // output. The first is always written; another that nothing reads becomes
  // absent.
  std::vector<ir::Value*> results;
  std::string domain;
  std::string op_type;
  std::vector<ir::Attribute> attributes;
};

// Where a call can stand.
struct Place {
  ir::Node* before =
      nullptr;  // the call goes before this node (end of graph: nullptr)
  std::vector<ir::Node*>
      earlier;  // nodes to be moved before the call first, in order
};

class Rewriter {
 public:
  explicit Rewriter(ir::Model& model) : model_(model) {}

  // Gives the nodes orders in which each comes after what it reads, changing as
  // little as possible, and moves none. The graph must have no cycle.
  void Number(ir::Graph& graph);
  // The same, and puts the nodes where their orders are.
  void Sort(ir::Graph& graph);

  // A place after all operands and before all readers of the results; nullopt
  // if an operand depends on a result, so that the call would be in a cycle.
  // The graph must be numbered.
  std::optional<Place> FindPlace(const CallReplacement& call) const;

  // Puts in the call, takes out `nodes`, and with them the constants and values
  // that nothing reads any more.
  ir::Node* ReplaceByCall(CallReplacement call, const Place& place);

  // Adds a function after those that it calls and before all others.
  void AddFunction(std::list<ir::Function> function);

  // Makes the domain known where `graph` is: in its function and in the model.
  void ImportDomain(const ir::Graph& graph, const std::string& domain,
                    int64_t version);

 private:
  void EraseIfUnused(ir::Value* value);

  ir::Model& model_;
};

// True if the nodes stand after what they read, in subgraphs too.
bool IsSorted(const ir::Graph& graph);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_REWRITER_H_
