// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/sites.h"

#include <algorithm>
#include <iterator>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "passes/fused_op.h"
#include "passes/operators.h"

namespace addnorm::passes {
namespace {

// What fused ops of this tool and of others are called.
struct FusedName {
  std::string_view domain;
  std::string_view op_prefix;
};
constexpr FusedName kFusedOps[] = {
    {kFusedDomain, "AddRmsNorm"},
    {"com.microsoft", "SkipSimplifiedLayerNormalization"},
};

bool IsFusedName(std::string_view domain, std::string_view op) {
  return std::any_of(
      std::begin(kFusedOps), std::end(kFusedOps), [&](const FusedName& fused) {
        return domain == fused.domain && op.starts_with(fused.op_prefix);
      });
}

bool IsInFusedBody(const ir::Graph& graph) {
  const ir::Function* function = graph.function();
  return function != nullptr && IsFusedName(function->domain, function->name);
}

// LayerNormalization, or the difference between a value and its mean.
bool IsLayerNorm(const ir::Node& node) {
  if (node.op_type() == "LayerNormalization" ||
      node.op_type() == "SkipLayerNormalization") {
    return true;
  }
  if (!node.Is("", "Sub") || node.input(0) == nullptr ||
      node.input(1) == nullptr)
    return false;
  const ir::Node* mean = node.input(1)->producer();
  return mean != nullptr && mean->Is("", "ReduceMean") &&
         mean->input(0) == node.input(0);
}

bool IsAveraging(const ir::Node& node) {
  return IsReduction(node) || node.op_type() == "GlobalAveragePool";
}

// True if the operator is a norm by itself, or a square whose mean or sum is
// taken: what a person would call a norm that did not match.
bool LooksLikeNorm(const ir::Model& model, const ir::Node& head) {
  if (head.op_type().ends_with("Normalization") || IsReduction(head))
    return true;
  const ir::Value* value = head.output(0);
  for (int casts = 0; value != nullptr && casts < 4; ++casts) {
    const ir::Value* next = nullptr;
    for (const ir::Use& use : value->uses()) {
      if (IsAveraging(*use.node)) return true;
      if (IsFloatCast(model, *use.node)) next = use.node->output(0);
    }
    value = next;
  }
  return false;
}

}  // namespace

std::string GraphLabel(const ir::Graph& graph) {
  if (const ir::Node* owner = graph.owner()) {
    std::string attribute;
    for (const ir::Attribute& a : owner->attributes) {
      const auto* inner = a.get<std::unique_ptr<ir::Graph>>();
      if (inner != nullptr && inner->get() == &graph)
        attribute = a.name + " of ";
    }
    return attribute + owner->Describe();
  }
  if (const ir::Function* function = graph.function()) {
    return fmt::format("function '{}::{}'", function->domain, function->name);
  }
  return "";
}

std::vector<Site> SiteFinder::Find() {
  for (ir::Graph* graph : model_.AllGraphs()) {
    graph->NumberNodes();
    if (!IsInFusedBody(*graph)) FindIn(*graph);
  }
  RefuseSecondNorms();
  DropPartsOfSites();
  return std::move(sites_);
}

void SiteFinder::FindIn(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes()) {
    if (IsFusedName(node.domain(), node.op_type())) {
      AddFused(node);
    } else if (IsLayerNorm(node)) {
      ++layer_norms_;
    } else if (matcher_.IsHead(node)) {
      AddNorm(&node);
    }
  }
}

void SiteFinder::AddFused(const ir::Node& node) {
  Site site;
  site.candidate.verdict = Verdict::kAlreadyFused;
  site.candidate.graph = GraphLabel(*node.graph());
  site.candidate.node = node.Describe();
  site.candidate.op = node.op_type();
  if (node.output(0) != nullptr) site.candidate.y = node.output(0)->name();
  sites_.push_back(std::move(site));
}

void SiteFinder::AddNorm(ir::Node* head) {
  NormMatch norm = matcher_.MatchFrom(head);
  needs_type_ |= norm.needs_type;
  ir::Node* producer =
      norm.x->graph() == head->graph() ? norm.x->producer() : nullptr;
  const bool has_add = producer != nullptr && producer->Is("", "Add") &&
                       IsStandardOp(model_, *producer);
  if (!norm.found() && (!has_add || !LooksLikeNorm(model_, *head))) return;
  // A function that is a norm is looked at where it is called.
  if (head->graph()->function() != nullptr && norm.x->is_input()) return;

  Site site;
  site.head = head;
  Candidate& candidate = site.candidate;
  candidate.graph = GraphLabel(*head->graph());
  candidate.node = has_add ? producer->Describe() : head->Describe();
  candidate.sum = norm.x->name();
  candidate.variant = norm.variant;
  if (norm.found()) candidate.y = norm.y->name();
  if (!norm.found()) {
    candidate.reason = norm.reason;
  } else if (has_add) {
    site.add = producer;
    candidate.reason = CheckAdd(*producer);
    candidate.verdict =
        candidate.reason.empty() ? Verdict::kFused : Verdict::kNotFused;
  } else {
    candidate.verdict = Verdict::kNoAdd;
    candidate.reason =
        norm.x->producer() == nullptr
            ? fmt::format("'{}' is not made by an Add", norm.x->name())
        : norm.x->graph() != head->graph()
            ? fmt::format("'{}' is made in an outer graph", norm.x->name())
            : fmt::format("'{}' is made by {}, not by an Add", norm.x->name(),
                          norm.x->producer()->Describe());
  }
  site.norm = std::move(norm);
  sites_.push_back(std::move(site));
}

std::string SiteFinder::CheckAdd(const ir::Node& add) {
  if (add.inputs().size() != 2 || add.input(0) == nullptr ||
      add.input(1) == nullptr) {
    return fmt::format("{} has {} operands, expected 2", add.Describe(),
                       add.inputs().size());
  }
  if (add.outputs().size() != 1)
    return fmt::format("{} has several outputs", add.Describe());
  if (!add.attributes.empty())
    return fmt::format("{} has attributes", add.Describe());
  if (add.has_device_configurations) {
    return fmt::format("{} has device configurations", add.Describe());
  }
  return CheckOperands(add);
}

std::string SiteFinder::CheckOperands(const ir::Node& add) {
  for (const ir::Value* operand : add.inputs()) {
    if (!constants_.DependsOnInput(operand)) {
      return fmt::format(
          "'{}' is a constant: a bias or a position table, not a residual",
          operand->name());
    }
  }
  for (const ir::Value* value : {add.input(0), add.input(1), add.output(0)}) {
    if (value->type.known() && !ir::IsFloat(value->type.element)) {
      return fmt::format("'{}' is {}, expected a float type", value->name(),
                         ir::DataTypeName(value->type.element));
    }
  }
  const auto& a = add.input(0)->type.shape;
  const auto& b = add.input(1)->type.shape;
  needs_type_ |= !a || !b;
  if (!a || !b || !ir::ProvablyDiffer(*a, *b)) return "";
  return fmt::format(
      "the operands have different shapes: '{}' is {}, '{}' is {}",
      add.input(0)->name(), ToString(*a), add.input(1)->name(), ToString(*b));
}

// Two norms on one sum: the first takes the Add, the others read the sum.
void SiteFinder::RefuseSecondNorms() {
  absl::flat_hash_map<const ir::Node*, const Candidate*> takers;
  for (Site& site : sites_) {
    if (site.candidate.verdict != Verdict::kFused) continue;
    const auto [taker, is_first] = takers.emplace(site.add, &site.candidate);
    if (is_first) continue;
    site.candidate.verdict = Verdict::kNotFused;
    site.candidate.reason = fmt::format(
        "the norm that makes '{}' takes the Add; this one reads "
        "the same sum",
        taker->second->y);
  }
}

// An operator inside a site may look like the beginning of another norm.
void SiteFinder::DropPartsOfSites() {
  absl::flat_hash_set<const ir::Node*> inside;
  for (const Site& site : sites_) {
    if (site.candidate.verdict != Verdict::kFused) continue;
    inside.insert(site.norm.nodes.begin(), site.norm.nodes.end());
  }
  std::erase_if(sites_, [&](const Site& site) {
    return site.candidate.verdict != Verdict::kFused &&
           inside.contains(site.head);
  });
}

}  // namespace addnorm::passes
