// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/matcher.h"

#include <algorithm>
#include <string>
#include <vector>

#include "passes/norm_search.h"
#include "passes/operators.h"
#include "passes/pattern.h"

namespace addnorm::passes {
namespace {

// Functions that call functions that … are a norm.
constexpr int kMaxCallDepth = 16;

// The operators that a rule's rows begin with.
void CollectHeads(const std::string& rule, std::vector<std::string>& heads) {
  for (const PatternRow& row : RmsNormGrammar().at(rule)) {
    const auto first =
        std::find_if(row.nodes.begin(), row.nodes.end(),
                     [](const PatternNode& node) { return !node.constant; });
    if (first->is_rule) {
      CollectHeads(first->op, heads);
    } else if (std::find(heads.begin(), heads.end(), first->op) ==
               heads.end()) {
      heads.push_back(first->op);
    }
  }
}

}  // namespace

ir::Value* StripCasts(ir::Value* value) {
  for (int i = 0; i < kMaxCasts; ++i) {
    const ir::Node* producer = value->producer();
    if (producer == nullptr ||
        !IsFloatCast(*value->graph()->model(), *producer))
      return value;
    value = producer->input(0);
  }
  return value;
}

bool Matcher::IsHead(const ir::Node& node) const {
  static const auto* heads = [] {
    auto* ops = new std::vector<std::string>;
    CollectHeads("norm", *ops);
    return ops;
  }();
  if (node.input(0) == nullptr) return false;
  if (!IsStandardOp(model_, node)) {
    const ir::Function* function =
        model_.FindFunction(node.domain(), node.op_type(), node.overload);
    return function != nullptr && !no_norms_.contains(function);
  }
  if (std::find(heads->begin(), heads->end(), node.op_type()) == heads->end())
    return false;
  // A product is a square only of one value with itself.
  const bool is_product = node.op_type() == "Mul" && node.input(1) != nullptr;
  return !is_product || StripCasts(node.input(0)) == StripCasts(node.input(1));
}

NormMatch Matcher::MatchFrom(ir::Node* head) {
  if (IsStandardOp(model_, *head))
    return NormSearch(model_, constants_, head).Run();
  return MatchCall(head, 0);
}

NormMatch Matcher::MatchCall(ir::Node* call, int depth) {
  const ir::Function* function =
      model_.FindFunction(call->domain(), call->op_type(), call->overload);
  NormMatch none;
  none.x = StripCasts(call->input(0));
  if (function == nullptr || depth > kMaxCallDepth ||
      no_norms_.contains(function))
    return none;
  if (call->inputs().size() != function->body.inputs().size() ||
      call->outputs().size() != 1 || call->output(0) == nullptr) {
    return none;
  }
  const NormMatch body = MatchBody(*function, *call, depth);
  none.needs_type = body.needs_type;
  if (!body.found() && !body.needs_type) no_norms_.insert(function);
  if (!body.found()) return none;
  return NormSearch(model_, constants_, call).RunCall(*function, body);
}

NormMatch Matcher::MatchBody(const ir::Function& function, const ir::Node& call,
                             int depth) {
  NormMatch none;
  const auto& inputs = function.body.inputs();
  for (const ir::Node& node : function.body.nodes()) {
    if (!IsHead(node)) continue;
    auto* head = const_cast<ir::Node*>(&node);
    const auto parameter =
        std::find(inputs.begin(), inputs.end(), StripCasts(head->input(0)));
    if (parameter == inputs.end()) continue;
    const ir::Value* argument =
        call.input(static_cast<size_t>(parameter - inputs.begin()));
    if (argument == nullptr) continue;
    NormMatch match = IsStandardOp(model_, node)
                          ? NormSearch(model_, constants_, head, argument).Run()
                          : MatchCall(head, depth + 1);
    none.needs_type |= match.needs_type;
    if (match.found() && function.body.outputs().size() == 1 &&
        match.y == function.body.outputs()[0]) {
      return match;
    }
  }
  return none;
}

}  // namespace addnorm::passes
