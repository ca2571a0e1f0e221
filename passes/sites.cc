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

bool IsLayerNorm(const ir::Node& node) {
  return node.op_type() == "LayerNormalization" ||
         node.op_type() == "SkipLayerNormalization" || IsCentring(node);
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

// True if a mean is subtracted from the value, which counts as a LayerNorm.
bool IsCentredElsewhere(const ir::Value& x) {
  constexpr size_t kMaxReaders = 64;
  return x.uses().size() > kMaxReaders ||
         std::any_of(x.uses().begin(), x.uses().end(),
                     [](const ir::Use& use) { return IsCentring(*use.node); });
}

// How many operators match up to the root, so that a person sees a norm.
constexpr size_t kDepthOfRoot = 4;

// Operators between an Add and a norm.
constexpr size_t kMaxBetween = 4;

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
  const Outlines outlines = OutlinesOf(graph);
  for (ir::Node& node : graph.nodes()) {
    const auto found = outlines.find(&node);
    const NormOutline* outline =
        found == outlines.end() ? nullptr : &found->second;
    if (IsFusedName(node.domain(), node.op_type())) {
      AddFused(node);
    } else if (IsLayerNorm(node)) {
      ++layer_norms_;
    } else if (matcher_.IsHead(node) && AddNorm(&node, outline)) {
      continue;
    } else if (outline != nullptr) {
      if (outline->is_variance && !IsCentredElsewhere(*outline->x))
        ++layer_norms_;
      AddOutline(*outline);
    } else {
      AddLookalike(node);
    }
  }
}

SiteFinder::Outlines SiteFinder::OutlinesOf(ir::Graph& graph) {
  Outlines outlines;
  for (ir::Node& node : graph.nodes()) {
    if (!IsAveraging(node) || !IsStandardOp(model_, node)) continue;
    if (auto outline = outliner_.From(&node))
      outlines.emplace(outline->power, *std::move(outline));
  }
  return outlines;
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

// False if it is none, and looks like none.
bool SiteFinder::AddNorm(ir::Node* head, const NormOutline* outline) {
  NormMatch norm = matcher_.MatchFrom(head);
  needs_type_ |= norm.needs_type;
  // Why a call is none is said where its function is looked at.
  if (!norm.found() && norm.reason.empty() && !IsStandardOp(model_, *head))
    return false;
  if (!IsWorthReporting(norm, *head, outline)) return false;
  norm.reason = WithIntruder(norm, outline);
  ir::Node* add = ResidualAdd(*norm.x, *head->graph());
  Site site{.candidate = add != nullptr ? JudgeAdd(*add, norm)
                                        : JudgeWithoutAdd(*head, norm),
            .add = norm.found() ? add : nullptr,
            .head = head,
            .norm = {}};
  site.candidate.graph = GraphLabel(*head->graph());
  site.candidate.sum = norm.x->name();
  site.candidate.variant = norm.variant;
  if (norm.found()) site.candidate.y = norm.y->name();
  site.norm = std::move(norm);
  sites_.push_back(std::move(site));
  return true;
}

Candidate SiteFinder::JudgeAdd(const ir::Node& add, const NormMatch& norm) {
  Candidate candidate;
  candidate.node = add.Describe();
  candidate.reason = norm.found() ? CheckAdd(add) : norm.reason;
  if (norm.found() && candidate.reason.empty())
    candidate.verdict = Verdict::kFused;
  return candidate;
}

Candidate SiteFinder::JudgeWithoutAdd(const ir::Node& head,
                                      const NormMatch& norm) {
  const ir::Node* behind = AddBehind(*norm.x);
  Candidate candidate;
  candidate.node = (behind != nullptr ? *behind : head).Describe();
  if (behind == nullptr) candidate.verdict = Verdict::kNoAdd;
  candidate.reason = norm.found() || norm.depth < kDepthOfRoot
                         ? WhyNoAdd(*norm.x, *head.graph())
                         : norm.reason;
  return candidate;
}

ir::Node* SiteFinder::ResidualAdd(const ir::Value& x, const ir::Graph& graph) {
  ir::Node* producer = x.graph() == &graph ? x.producer() : nullptr;
  const bool is_add = producer != nullptr && producer->Is("", "Add") &&
                      IsStandardOp(model_, *producer);
  return is_add ? producer : nullptr;
}

ir::Node* SiteFinder::AddBehind(ir::Value& x) {
  const WayBack way = outliner_.Back(&x, kMaxBetween);
  ir::Node* add = ResidualAdd(*way.values.back(), *x.graph());
  return add != nullptr && !way.nodes.empty() && CheckAdd(*add).empty()
             ? add
             : nullptr;
}

std::string SiteFinder::WhyNoAdd(ir::Value& x, const ir::Graph& graph) {
  if (x.graph() != &graph) {
    return fmt::format("'{}' is made in an outer graph", x.name());
  }
  const ir::Node* producer = x.producer();
  if (producer == nullptr) {
    return fmt::format("'{}' is not made by an Add", x.name());
  }
  const std::string_view how =
      AddBehind(x) != nullptr   ? "which stands between the Add and the norm"
      : producer->Is("", "Add") ? "which a function of the model redefines"
                                : "not by an Add";
  return fmt::format("'{}' is made by {}, {}", x.name(), producer->Describe(),
                     how);
}

bool SiteFinder::IsWorthReporting(const NormMatch& norm, const ir::Node& head,
                                  const NormOutline* outline) {
  const ir::Node* producer = norm.x->producer();
  const bool is_centred = producer != nullptr && IsLayerNorm(*producer);
  if (is_centred && (norm.found() || outline != nullptr)) return false;
  if (outline != nullptr && outline->is_variance && !norm.found()) return false;
  // A function that is a norm is looked at where it is called.
  if (head.graph()->function() != nullptr && norm.x->is_input()) return false;
  if (norm.found() || norm.is_called_norm) return true;
  if (norm.depth >= kDepthOfRoot) return true;
  if (outline == nullptr && !LooksLikeNorm(model_, head)) return false;
  return ResidualAdd(*norm.x, *head.graph()) != nullptr ||
         AddBehind(*norm.x) != nullptr;
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
