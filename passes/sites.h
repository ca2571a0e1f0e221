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

#include "absl/container/flat_hash_map.h"
#include "passes/constants.h"
#include "passes/fusion_report.h"
#include "passes/ir/model.h"
#include "passes/matcher.h"
#include "passes/norm_outline.h"

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
      : model_(model),
        constants_(constants),
        matcher_(model, constants),
        outliner_(model, constants) {}

  // In the order of the graphs and their nodes.
  std::vector<Site> Find();

  // True if an unknown type or shape mattered: worth inferring types and trying
  // again.
  bool needs_type() const { return needs_type_; }
  // Mean-subtracting norms seen on the way.
  int layer_norms() const { return layer_norms_; }

 private:
  // What a function looks like, and why it is no norm ("" if it is one).
  struct NearNorm {
    bool looks_like_norm = false;
    size_t operand = 0;  // which it norms
    std::string reason;
  };
  using Outlines = absl::flat_hash_map<const ir::Node*, NormOutline>;

  void FindIn(ir::Graph& graph);
  // By the node that squares.
  Outlines OutlinesOf(ir::Graph& graph);
  bool AddNorm(ir::Node* head, const NormOutline* outline);
  Candidate JudgeAdd(const ir::Node& add, const NormMatch& norm);
  Candidate JudgeWithoutAdd(const ir::Node& head, const NormMatch& norm);
  void AddFused(const ir::Node& node);
  void AddOutline(const NormOutline& outline);
  void AddLookalike(ir::Node& node);
  void AddCall(ir::Node& call, const ir::Function& function);
  void AddNearMiss(ir::Node& head, ir::Value& operand,
                   const std::string& reason);
  NearNorm FindNearNorm(const ir::Function& function, int depth);
  NearNorm NearNormAt(ir::Node& node, int depth);
  NearNorm ResultOf(const ir::Node& node, ir::Value& x, std::string reason);
  std::string WhyNoNormCall(ir::Node& call, const ir::Function& function);
  static std::string WithIntruder(const NormMatch& norm,
                                  const NormOutline* outline);
  std::string ReasonOf(const NormOutline& outline);
  // The Add of this graph that makes x, if one does.
  ir::Node* ResidualAdd(const ir::Value& x, const ir::Graph& graph);
  // The residual Add of the same graph from which few operators lead to x.
  ir::Node* AddBehind(ir::Value& x);
  std::string WhyNoAdd(ir::Value& x, const ir::Graph& graph);
  bool IsWorthReporting(const NormMatch& norm, const ir::Node& head,
                        const NormOutline* outline);
  std::string CheckAdd(const ir::Node& add);
  std::string CheckOperands(const ir::Node& add);

  ir::Model& model_;
  Constants& constants_;
  Matcher matcher_;
  NormOutliner outliner_;
  std::vector<Site> sites_;
  bool needs_type_ = false;
  int layer_norms_ = 0;
  absl::flat_hash_map<const ir::Function*, NearNorm> near_norms_;
};

// "" for the main graph, else "function 'my::Block'" or "then_branch of If
// '/if'".
std::string GraphLabel(const ir::Graph& graph);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_SITES_H_
