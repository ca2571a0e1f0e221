// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The sites that are none, but look like one: reasons only, nothing is matched.
#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "passes/operators.h"
#include "passes/sites.h"

namespace addnorm::passes {
namespace {

// Functions that call functions that … look like a norm.
constexpr int kMaxNearCallDepth = 16;

// Norms of another kind, by the operator that takes the place of the square.
struct Lookalike {
  std::string_view op;
  std::string_view reason;
};
constexpr Lookalike kLookalikes[] = {
    {"LpNormalization", "an L2 norm has no mean and no epsilon"},
    {"ReduceL2", "an L2 norm has no mean, and epsilon outside the root"},
    {"ReduceL1", "a mean of absolute values is no RMS"},
    {"Abs", "a mean of absolute values is no RMS"},
};

std::string_view LookalikeReason(const ir::Node& node) {
  const auto* row =
      std::find_if(std::begin(kLookalikes), std::end(kLookalikes),
                   [&](const Lookalike& l) { return node.Is("", l.op); });
  return row == std::end(kLookalikes) ? "" : row->reason;
}

// "RMSNorm" and the like, which says nothing of what it computes.
bool IsNamedNorm(const ir::Node& node) {
  const std::string name = absl::AsciiStrToLower(node.op_type());
  return name.find("rmsnorm") != std::string::npos ||
         name.find("simplifiedlayernorm") != std::string::npos;
}

}  // namespace

// The deepest condition that failed and, where that is only that the graph goes
// on in another way, the operator that no spelling has.
std::string SiteFinder::WithIntruder(const NormMatch& norm,
                                     const NormOutline* outline) {
  if (outline == nullptr || outline->intruder.empty() || !norm.is_unspecific)
    return norm.reason;
  const bool is_before_norm = norm.x != StripCasts(outline->x);
  if (is_before_norm || norm.depth == 0 || norm.reason.empty())
    return outline->intruder;
  return fmt::format("{}: {}", norm.reason, outline->intruder);
}

// Where no spelling begins as this one does.
void SiteFinder::AddOutline(const NormOutline& outline) {
  if (outline.is_centred) return;
  AddNearMiss(*outline.power, *outline.x, ReasonOf(outline));
}

// "" if it is a norm.
std::string SiteFinder::ReasonOf(const NormOutline& outline) {
  if (matcher_.IsHead(*outline.power))
    return WithIntruder(matcher_.MatchFrom(outline.power), &outline);
  const std::string_view reason = LookalikeReason(*outline.power);
  if (!reason.empty())
    return fmt::format("{}: {}", outline.power->Describe(), reason);
  if (!outline.intruder.empty()) return outline.intruder;
  return fmt::format("{}: is no square of the sum", outline.power->Describe());
}

// Norms that are one operator or one call. Worth a word where an Add feeds
// them.
void SiteFinder::AddLookalike(ir::Node& node) {
  if (node.input(0) == nullptr) return;
  if (node.Is("", "LpNormalization")) {
    AddNearMiss(node, *node.input(0),
                fmt::format("{}: {}", node.Describe(), LookalikeReason(node)));
  }
  if (IsStandardOp(model_, node)) return;
  const ir::Function* function =
      model_.FindFunction(node.domain(), node.op_type(), node.overload);
  if (function != nullptr) {
    AddCall(node, *function);
  } else if (IsNamedNorm(node) && !node.domain().empty()) {
    AddNearMiss(node, *node.input(0),
                fmt::format("{} is of domain '{}', expected RMSNormalization "
                            "of the default domain",
                            node.Describe(), node.domain()));
  }
}

void SiteFinder::AddCall(ir::Node& call, const ir::Function& function) {
  const NearNorm near = FindNearNorm(function, 0);
  if (!near.looks_like_norm && IsNamedNorm(call)) {
    AddNearMiss(call, *call.input(0),
                fmt::format("{} is a function of the model, whose body is no "
                            "RMSNorm",
                            call.Describe()));
  }
  if (!near.looks_like_norm || call.input(near.operand) == nullptr) return;
  AddNearMiss(call, *call.input(near.operand),
              near.reason.empty()
                  ? WhyNoNormCall(call, function)
                  : fmt::format("{}: in function '{}::{}': {}", call.Describe(),
                                function.domain, function.name, near.reason));
}

// Of a function that is a norm.
std::string SiteFinder::WhyNoNormCall(ir::Node& call,
                                      const ir::Function& function) {
  if (!call.overload.empty()) {
    return fmt::format(
        "{} calls overload '{}': ONNX Runtime does not tell overloads apart "
        "inside functions",
        call.Describe(), call.overload);
  }
  if (call.outputs().size() != function.body.outputs().size()) {
    return fmt::format("{} has {} results, expected {}", call.Describe(),
                       call.outputs().size(), function.body.outputs().size());
  }
  const std::string reason = matcher_.MatchFrom(&call).reason;
  return reason.empty()
             ? fmt::format("{} has operands that no norm has", call.Describe())
             : reason;
}

void SiteFinder::AddNearMiss(ir::Node& head, ir::Value& operand,
                             const std::string& reason) {
  ir::Value* x = StripCasts(&operand);
  ir::Node* add = ResidualAdd(*x, *head.graph());
  if (add == nullptr) add = AddBehind(*x);
  if (add == nullptr || !CheckAdd(*add).empty()) return;
  Site site;
  site.head = &head;
  site.candidate.graph = GraphLabel(*head.graph());
  site.candidate.node = add->Describe();
  site.candidate.sum = x->name();
  site.candidate.reason = reason;
  sites_.push_back(std::move(site));
}

SiteFinder::NearNorm SiteFinder::FindNearNorm(const ir::Function& function,
                                              int depth) {
  // First as no norm, for functions that call themselves.
  const auto [known, is_new] = near_norms_.try_emplace(&function);
  if (!is_new || depth > kMaxNearCallDepth) return known->second;
  NearNorm near;
  for (const ir::Node& node : function.body.nodes()) {
    near = NearNormAt(const_cast<ir::Node&>(node), depth);
    if (near.looks_like_norm) break;
  }
  near_norms_[&function] = near;
  return near;
}

// The norm of a function's operand that begins, or ends, at the node.
SiteFinder::NearNorm SiteFinder::NearNormAt(ir::Node& node, int depth) {
  if (FindNormOperator(node) != nullptr && node.input(0) != nullptr) {
    return ResultOf(node, *node.input(0), matcher_.MatchFrom(&node).reason);
  }
  if (IsStandardOp(model_, node)) {
    if (!IsAveraging(node)) return {};
    const auto outline = outliner_.From(&node);
    if (!outline || outline->is_centred) return {};
    return ResultOf(*outline->product, *outline->x, ReasonOf(*outline));
  }
  const ir::Function* function =
      model_.FindFunction(node.domain(), node.op_type(), node.overload);
  if (function == nullptr) return {};
  const NearNorm near = FindNearNorm(*function, depth + 1);
  if (!near.looks_like_norm || node.input(near.operand) == nullptr) return {};
  return ResultOf(node, *node.input(near.operand), near.reason);
}

// If x is an operand of the function, and the node leads to its result.
SiteFinder::NearNorm SiteFinder::ResultOf(const ir::Node& node, ir::Value& x,
                                          std::string reason) {
  const auto& inputs = node.graph()->inputs();
  const auto operand = std::find(inputs.begin(), inputs.end(), StripCasts(&x));
  if (operand == inputs.end() || !outliner_.LeadsToOutput(node)) return {};
  return {.looks_like_norm = true,
          .operand = static_cast<size_t>(operand - inputs.begin()),
          .reason = std::move(reason)};
}

}  // namespace addnorm::passes
