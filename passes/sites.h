// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the sites of a model: each residual Add together with the norm that
// reads its sum, and what stands in the way where there is none. Pure.
//
//   SiteFinder finder(model, constants);
//   for (Site& site : finder.Find()) …  // site.candidate says what and why
#ifndef ADDNORM_PASSES_SITES_H_
#define ADDNORM_PASSES_SITES_H_

#include <string>
#include <vector>

#include "passes/constants.h"
#include "passes/fusion_report.h"
#include "passes/ir/model.h"
#include "passes/matcher.h"

namespace addnorm::passes {

struct Site {
  Candidate candidate;      // verdict kFused: nothing known stands in the way
  ir::Node* add = nullptr;  // nullptr if the norm's input is not made by an Add
  ir::Node* head = nullptr;  // the norm's first operator
  NormMatch norm;
};

class SiteFinder {
 public:
  SiteFinder(ir::Model& model, Constants& constants)
      : model_(model), constants_(constants), matcher_(model, constants) {}

  // In the order of the graphs and their nodes.
  std::vector<Site> Find();

  // True if an unknown type or shape mattered: worth inferring types and trying
  // again.
  bool needs_type() const { return needs_type_; }
  // Mean-subtracting norms seen on the way.
  int layer_norms() const { return layer_norms_; }

 private:
  void FindIn(ir::Graph& graph);
  void AddNorm(ir::Node* head);
  void AddFused(const ir::Node& node);
  void AddLookalike(const ir::Node& node);
  // The Add of this graph that makes x, if one does.
  ir::Node* ResidualAdd(const ir::Value& x, const ir::Graph& graph);
  bool IsWorthReporting(const NormMatch& norm, const ir::Node& head,
                        bool has_add);
  std::string CheckAdd(const ir::Node& add);
  std::string CheckOperands(const ir::Node& add);

  ir::Model& model_;
  Constants& constants_;
  Matcher matcher_;
  std::vector<Site> sites_;
  bool needs_type_ = false;
  int layer_norms_ = 0;
};

// "" for the main graph, else "function 'my::Block'" or "then_branch of If
// '/if'".
std::string GraphLabel(const ir::Graph& graph);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_SITES_H_
