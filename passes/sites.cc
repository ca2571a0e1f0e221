// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/sites.h"

#include <algorithm>
#include <iterator>

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
      const bool is_passing = IsFloatCast(model, *use.node) ||
                              use.node->op_type() == "QuantizeLinear" ||
                              use.node->op_type() == "DequantizeLinear";
      if (is_passing) next = use.node->output(0);
    }
    value = next;
  }
  return false;
}

// How many operators match up to the root, so that a person sees a norm.
constexpr size_t kDepthOfRoot = 4;

// Norms of another kind.
struct Lookalike {
  std::string_view op;
  std::string_view reason;
  bool is_part;  // a norm only where the value is divided afterwards
};
constexpr Lookalike kLookalikes[] = {
    {"LpNormalization", "an L2 norm has no mean and no epsilon", false},
    {"ReduceL2", "an L2 norm has no mean, and epsilon outside the root", true},
    {"ReduceL1", "a mean of absolute values is no RMS", true},
    {"Abs", "a mean of absolute values is no RMS", true},
};

// True if something divides the value, or multiplies it: a norm's last step.
bool IsDivided(const ir::Value& x) {
  return std::any_of(x.uses().begin(), x.uses().end(), [](const ir::Use& use) {
    return use.node->Is("", "Div") || use.node->Is("", "Mul");
  });
}

// True if an Add of the same graph makes what x is made of, one or two steps
// earlier (two: a value that is quantised and dequantised).
bool HasAddBehind(const ir::Value& x) {
  const ir::Value* value = &x;
  for (int steps = 0; steps < 3 && value != nullptr; ++steps) {
    const ir::Node* producer = value->producer();
    if (producer == nullptr || value->graph() != x.graph()) return false;
    if (producer->Is("", "Add")) return steps > 0;
    value = producer->input(0);
  }
  return false;
}

std::string WhyNoAdd(const ir::Value& x, const ir::Graph& graph) {
  if (x.graph() != &graph) {
    return fmt::format("'{}' is made in an outer graph", x.name());
  }
  const ir::Node* producer = x.producer();
  if (producer == nullptr) {
    return fmt::format("'{}' is not made by an Add", x.name());
  }
  return fmt::format("'{}' is made by {}, {}", x.name(), producer->Describe(),
                     HasAddBehind(x)
                         ? "which stands between the Add and the norm"
                         : "not by an Add");
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
    } else {
      AddLookalike(node);
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
  ir::Node* add = ResidualAdd(*norm.x, *head->graph());
  if (!IsWorthReporting(norm, *head, add != nullptr)) return;

  Site site;
  site.head = head;
  Candidate& candidate = site.candidate;
  candidate.graph = GraphLabel(*head->graph());
  candidate.node = add != nullptr ? add->Describe() : head->Describe();
  candidate.sum = norm.x->name();
  candidate.variant = norm.variant;
  if (norm.found()) candidate.y = norm.y->name();
  if (add == nullptr) {
    if (!HasAddBehind(*norm.x)) candidate.verdict = Verdict::kNoAdd;
    candidate.reason = norm.found() || norm.depth < kDepthOfRoot
                           ? WhyNoAdd(*norm.x, *head->graph())
                           : norm.reason;
  } else if (!norm.found()) {
    candidate.reason = norm.reason;
  } else {
    site.add = add;
    candidate.reason = CheckAdd(*add);
    if (candidate.reason.empty()) candidate.verdict = Verdict::kFused;
  }
  site.norm = std::move(norm);
  sites_.push_back(std::move(site));
}

ir::Node* SiteFinder::ResidualAdd(const ir::Value& x, const ir::Graph& graph) {
  ir::Node* producer = x.graph() == &graph ? x.producer() : nullptr;
  const bool is_add = producer != nullptr && producer->Is("", "Add") &&
                      IsStandardOp(model_, *producer);
  return is_add ? producer : nullptr;
}

bool SiteFinder::IsWorthReporting(const NormMatch& norm, const ir::Node& head,
                                  bool has_add) {
  const ir::Node* producer = norm.x->producer();
  const bool is_centred = producer != nullptr && IsLayerNorm(*producer);
  if (norm.found() && is_centred) return false;
  // A function that is a norm is looked at where it is called.
  if (head.graph()->function() != nullptr && norm.x->is_input()) return false;
  if (norm.found() || norm.is_called_norm) return true;
  if (norm.depth >= kDepthOfRoot) return true;
  return (has_add || HasAddBehind(*norm.x)) && LooksLikeNorm(model_, head);
}

// Operators that normalise in another way. Worth a word where an Add feeds
// them.
void SiteFinder::AddLookalike(const ir::Node& node) {
  const auto* row =
      std::find_if(std::begin(kLookalikes), std::end(kLookalikes),
                   [&](const Lookalike& l) { return node.Is("", l.op); });
  if (row == std::end(kLookalikes) || node.input(0) == nullptr) return;
  const ir::Value* x = StripCasts(node.input(0));
  const ir::Node* add = ResidualAdd(*x, *node.graph());
  if (add == nullptr || !CheckAdd(*add).empty()) return;
  if (row->is_part && !IsDivided(*x)) return;
  Site site;
  site.candidate.graph = GraphLabel(*node.graph());
  site.candidate.node = add->Describe();
  site.candidate.sum = x->name();
  site.candidate.reason = fmt::format("{}: {}", node.Describe(), row->reason);
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

}  // namespace addnorm::passes
