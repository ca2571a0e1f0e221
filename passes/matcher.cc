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
constexpr int kMaxBodies = 256;

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

std::optional<int64_t> LastDimension(const ir::Value& value) {
  const auto& shape = value.type.shape;
  return !shape || shape->empty() ? std::nullopt : shape->back().value;
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
  bodies_left_ = kMaxBodies;
  return MatchCall(head, nullptr);
}

NormMatch Matcher::MatchUnscaledFrom(ir::Node* head) {
  if (!IsStandardOp(model_, *head)) return {};
  return NormSearch(model_, constants_, head).Run(/*with_scale=*/false);
}

RowsOf::RowsOf(const ir::Model& model, const ir::Value& value)
    : type(value.type), length(LastDimension(value)) {
  const ir::Node* sum = value.producer();
  const bool is_sum =
      sum != nullptr && sum->Is("", "Add") && IsStandardOp(model, *sum);
  if (!is_sum) return;
  for (const ir::Value* operand : sum->inputs()) {
    if (operand == nullptr || !operand->type.shape) continue;
    is_contradicted |=
        type.shape && operand->type.shape->size() > type.shape->size();
    const std::optional<int64_t> rows = LastDimension(*operand);
    if (!rows || *rows <= 1) continue;
    is_contradicted |= length && *length != *rows;
    length = rows;
  }
  if (!is_contradicted) return;
  type.shape = std::nullopt;
  length = std::nullopt;
}

RowsOf Matcher::Rows(const ir::Value& value, const Frame* frame) const {
  const RowsOf own(model_, value);
  if (own.type.known() || own.type.shape || frame == nullptr) return own;
  const auto& inputs = frame->function->body.inputs();
  const auto parameter = std::find(inputs.begin(), inputs.end(), &value);
  if (parameter == inputs.end()) return own;
  const ir::Value* argument =
      frame->call->input(static_cast<size_t>(parameter - inputs.begin()));
  return argument == nullptr ? own : Rows(*argument, frame->outer);
}

NormMatch Matcher::MatchCall(ir::Node* call, const Frame* outer) {
  const Frame frame{.call = call,
                    .function = model_.FindFunction(
                        call->domain(), call->op_type(), call->overload),
                    .outer = outer,
                    .depth = outer == nullptr ? 0 : outer->depth + 1};
  NormMatch none;
  none.x = StripCasts(call->input(0));
  // ONNX Runtime does not tell overloads apart inside functions.
  if (frame.function == nullptr || !call->overload.empty() ||
      frame.depth > kMaxCallDepth || --bodies_left_ < 0 ||
      no_norms_.contains(frame.function)) {
    return none;
  }
  const auto& body = frame.function->body;
  if (call->inputs().size() != body.inputs().size() ||
      call->outputs().size() != body.outputs().size() ||
      call->output(0) == nullptr) {
    return none;
  }
  const NormMatch match = MatchBody(frame);
  none.needs_type = match.needs_type;
  none.uses_type = match.uses_type;
  if (match.found()) {
    const auto rows =
        outer == nullptr ? std::nullopt : std::optional(Rows(*none.x, outer));
    return NormSearch(model_, constants_, call, rows)
        .RunCall(*frame.function, match);
  }
  if (!match.uses_type && bodies_left_ > 0) no_norms_.insert(frame.function);
  return none;
}

NormMatch Matcher::MatchBody(const Frame& frame) {
  NormMatch none;
  const ir::Graph& body = frame.function->body;
  const auto is_parameter = [&](const ir::Value* value) {
    const auto& inputs = body.inputs();
    return std::find(inputs.begin(), inputs.end(), value) != inputs.end();
  };
  for (const ir::Node& node : body.nodes()) {
    if (!IsHead(node)) continue;
    auto* head = const_cast<ir::Node*>(&node);
    const ir::Value* x = StripCasts(head->input(0));
    NormMatch match =
        IsStandardOp(model_, node)
            ? NormSearch(model_, constants_, head, Rows(*x, &frame)).Run()
            : MatchCall(head, &frame);
    none.needs_type |= match.needs_type;
    none.uses_type |= match.uses_type;
    if (match.found() && is_parameter(match.x) &&
        match.y == body.outputs()[0]) {
      return match;
    }
  }
  return none;
}

}  // namespace addnorm::passes
