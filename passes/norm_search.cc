// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The walk itself, and the reason if it fails.
#include "passes/norm_search.h"

#include <algorithm>

#include "fmt/ranges.h"
#include "passes/ir/check.h"
#include "passes/operators.h"

namespace addnorm::passes {
namespace {

// As the graph has them, each once.
void SortByOrder(std::vector<ir::Node*>& nodes) {
  std::sort(
      nodes.begin(), nodes.end(),
      [](const ir::Node* a, const ir::Node* b) { return a->order < b->order; });
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

bool Has(const std::vector<SlotId>& slots, SlotId wanted) {
  return std::find(slots.begin(), slots.end(), wanted) != slots.end();
}

}  // namespace

void NormSearch::Undo(const Mark& mark) {
  slots_.resize(mark.slots);
  operators_.resize(mark.operators);
  casts_.resize(mark.casts);
  tags_.resize(mark.tags);
  result_ = mark.result;
}

bool NormSearch::Solve(Agenda agenda) {
  if (agenda.empty()) return Accept(slots_[kYSlot].value);
  const Goal goal = std::move(agenda.back());
  agenda.pop_back();
  if (goal.pattern->is_rule) return SolveRule(goal, agenda);
  if (goal.pattern->constant) return SolveConstant(goal, std::move(agenda));
  if (goal.pattern->op == "Identity")
    return SolveIdentity(goal, std::move(agenda));
  return SolveOperator(goal, agenda);
}

bool NormSearch::SolveRule(const Goal& goal, const Agenda& rest) {
  for (const PatternRow& row : RmsNormGrammar().at(goal.pattern->op)) {
    const Mark mark = Save();
    if (!row.variant->tag.empty()) tags_.push_back(row.variant->tag);
    if (Solve(Expand(row, goal, rest))) return true;
    Undo(mark);
  }
  return false;
}

// Replaces a call of a rule by the row's own nodes.
Agenda NormSearch::Expand(const PatternRow& row, const Goal& call,
                          Agenda rest) {
  std::vector<std::pair<std::string_view, SlotId>> names = {
      {row.operand, call.inputs[0]}};
  for (SlotId role = 0; role < kRoleSlots; ++role)
    names.emplace_back(kRoleNames[role], role);
  const auto slot_of = [&](const std::string& name) {
    const auto found =
        std::find_if(names.begin(), names.end(),
                     [&](const auto& entry) { return entry.first == name; });
    ADDNORM_CHECK(found != names.end(),
                  "variant row reads '" + name + "', which nothing makes");
    return found->second;
  };
  std::vector<Goal> goals;
  for (const PatternNode& node : row.nodes) {
    Goal goal{.pattern = &node, .inputs = {}, .output = call.output};
    for (const std::string& input : node.inputs)
      goal.inputs.push_back(slot_of(input));
    if (node.output != row.result()) {
      goal.output = slots_.size();
      slots_.emplace_back();
    }
    names.emplace_back(node.output, goal.output);
    goals.push_back(std::move(goal));
  }
  rest.insert(rest.end(), goals.rbegin(), goals.rend());
  return rest;
}

bool NormSearch::SolveConstant(const Goal& goal, Agenda rest) {
  slots_[goal.output].constant = goal.pattern->constant;
  return Solve(std::move(rest));
}

// A row that does nothing: its result is its operand.
bool NormSearch::SolveIdentity(const Goal& goal, Agenda rest) {
  slots_[goal.output].value = slots_[goal.inputs[0]].value;
  return Solve(std::move(rest));
}

bool NormSearch::SolveOperator(const Goal& goal, const Agenda& rest) {
  // What was bound last leads to the candidates: x may have many readers.
  ir::Value* bound = nullptr;
  SlotId last = 0;
  for (SlotId slot : goal.inputs) {
    if (slots_[slot].value == nullptr || slot < last) continue;
    bound = slots_[slot].value;
    last = slot;
  }
  ADDNORM_CHECK(bound != nullptr,
                "a variant row's node reads nothing that is bound");
  const bool is_first = operators_.empty();
  const std::vector<ir::Node*> candidates =
      is_first ? std::vector<ir::Node*>{head_} : Candidates(goal, bound, rest);

  bool has_candidate = false;
  for (ir::Node* node : candidates) {
    if (!node->Is("", goal.pattern->op) || !IsStandardOp(model_, *node))
      continue;
    if (Contains(operators_, node)) continue;
    has_candidate = true;
    if (TryNode(goal, node, false, rest)) return true;
    if (IsCommutative(*node) && TryNode(goal, node, true, rest)) return true;
  }
  if (has_candidate || is_first) return false;
  return FailExpecting(*bound, goal.pattern->op);
}

bool NormSearch::TryNode(const Goal& goal, ir::Node* node, bool swapped,
                         const Agenda& rest) {
  const auto& outputs = node->outputs();
  if (node->output(0) == nullptr ||
      std::count(outputs.begin(), outputs.end(), nullptr) + 1 !=
          static_cast<std::ptrdiff_t>(outputs.size()))
    return Fail("{}: expected its first output alone", node->Describe());
  const Mark mark = Save();
  const Slot output = slots_[goal.output];
  if (BindOperands(goal, node, swapped) &&
      CheckAttributes(*goal.pattern, *node)) {
    operators_.push_back(node);
    slots_[goal.output].value = node->output(0);
    if (Solve(rest)) return true;
  }
  Undo(mark);
  slots_[goal.output] = output;
  return false;
}

std::vector<ir::Node*> NormSearch::ReadersThroughCasts(ir::Value* value,
                                                       size_t most) const {
  std::vector<ir::Node*> readers;
  std::vector<ir::Value*> front{value};
  for (int depth = 0; depth <= kMaxCasts && !front.empty(); ++depth) {
    std::vector<ir::Value*> next;
    for (const ir::Value* v : front) {
      for (const ir::Use& use : v->uses()) {
        if (use.node->graph() != graph_) continue;
        readers.push_back(use.node);
        if (readers.size() > most) return readers;
        if (use.index == 0 && IsFloatCast(model_, *use.node))
          next.push_back(use.node->output(0));
      }
    }
    front = std::move(next);
  }
  SortByOrder(readers);
  return readers;
}

// Where thousands of norms read one x, each of them would try all the others'
// readers. But what the result is combined with belongs to the norm alone: only
// nodes that lead to a reader of that can do.
std::vector<ir::Node*> NormSearch::Candidates(const Goal& goal,
                                              ir::Value* bound,
                                              const Agenda& rest) const {
  constexpr size_t kFewReaders = 64;
  std::vector<ir::Node*> few = ReadersThroughCasts(bound, kFewReaders);
  if (few.size() <= kFewReaders) return few;
  const auto combined =
      rest.empty() ? std::vector<SlotId>() : rest.back().inputs;
  const auto other =
      std::find_if(combined.begin(), combined.end(),
                   [&](SlotId slot) { return slots_[slot].value != nullptr; });
  if (other == combined.end() || !Has(combined, goal.output))
    return ReadersThroughCasts(bound);
  std::vector<ir::Node*> candidates;
  for (const ir::Node* reader : ReadersThroughCasts(slots_[*other].value)) {
    for (ir::Value* operand : reader->inputs()) {
      if (operand == nullptr) continue;
      ir::Node* producer = StripCasts(operand)->producer();
      if (producer != nullptr && producer->graph() == graph_)
        candidates.push_back(producer);
    }
  }
  SortByOrder(candidates);
  return candidates;
}

std::optional<size_t> NormSearch::RankOf(const ir::Value* value) {
  // Elementwise steps and Casts keep the rank of x. Where the file says
  // another, neither counts.
  const auto& own = value->type.shape;
  const auto& x = rows_.type.shape;
  if (rows_.is_contradicted || (own && x && own->size() != x->size()))
    return std::nullopt;
  if (own) return own->size();
  if (ShapeOfX()) return x->size();
  needs_type_ = true;
  return std::nullopt;
}

const std::optional<ir::Shape>& NormSearch::ShapeOfX() {
  uses_type_ = true;
  return rows_.type.shape;
}

bool NormSearch::FailExpecting(const ir::Value& value, const std::string& op) {
  return Record({.depth = DepthOf(value),
                 .is_condition = false,
                 .text = "",
                 .value = &value,
                 .expected = {op}});
}

size_t NormSearch::DepthOf(const ir::Value& value) const {
  std::vector<const ir::Value*> behind{&value};
  size_t depth = 0;
  for (auto node = operators_.rbegin(); node != operators_.rend(); ++node) {
    const auto& outputs = (*node)->outputs();
    if (std::find_first_of(outputs.begin(), outputs.end(), behind.begin(),
                           behind.end()) == outputs.end())
      continue;
    ++depth;
    for (ir::Value* input : (*node)->inputs()) {
      if (input != nullptr) behind.push_back(StripCasts(input));
    }
  }
  return depth;
}

std::vector<std::string> NormSearch::DescribeReaders(
    const ir::Value& value) const {
  std::vector<std::string> readers;
  std::vector<const ir::Value*> values{&value};
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string suffix =
        i == 0 ? "" : " after " + values[i]->producer()->op_type();
    for (const ir::Use& use : values[i]->uses()) {
      const bool is_cast = use.index == 0 && values.size() <= kMaxCasts &&
                           IsFloatCast(model_, *use.node);
      if (is_cast && !use.node->output(0)->uses().empty()) {
        values.push_back(use.node->output(0));
      } else {
        const bool is_redefined =
            use.node->domain().empty() && !IsStandardOp(model_, *use.node);
        readers.push_back(use.node->op_type() +
                          (is_redefined ? " (a function of the model)" : "") +
                          suffix);
      }
    }
  }
  std::sort(readers.begin(), readers.end());
  return readers;
}

bool NormSearch::Record(Failure failure) {
  const bool is_better = !failure_ || failure.depth > failure_->depth ||
                         (failure.depth == failure_->depth &&
                          failure.is_condition && !failure_->is_condition);
  if (is_better) {
    failure_ = std::move(failure);
  } else if (failure.depth == failure_->depth && failure.value != nullptr &&
             failure.value == failure_->value) {
    const std::string& op = failure.expected.front();
    auto& expected = failure_->expected;
    if (std::find(expected.begin(), expected.end(), op) == expected.end()) {
      expected.push_back(op);
    }
  }
  return false;
}

// Gives a call what the body of its function was matched as.
NormMatch NormSearch::RunCall(const ir::Function& function,
                              const NormMatch& body) {
  const auto& inputs = function.body.inputs();
  const auto x = std::find(inputs.begin(), inputs.end(), body.x);
  ir::Value* argument = head_->input(static_cast<size_t>(x - inputs.begin()));
  if (argument == nullptr) return Failed();
  operators_ = {head_};
  result_.epsilon_node = head_;
  result_.x = StripCasts(argument);
  result_.variant = body.variant.empty() ? "call" : "call_" + body.variant;
  result_.uses_type = body.uses_type;
  result_.is_called_norm = true;
  if (!BindEpsilonOfCall(function, body) || !BindOperandsOfCall(function, body))
    return Failed();
  FollowCasts(argument, result_.x);
  return Accept(head_->output(0)) ? result_ : Failed();
}

// What the call reads beside x and epsilon is its weight, whatever the function
// makes of it.
bool NormSearch::BindOperandsOfCall(const ir::Function& function,
                                    const NormMatch& body) {
  for (size_t i = 0; i < head_->inputs().size(); ++i) {
    const Operand operand{head_, static_cast<int>(i)};
    ir::Value* value = head_->input(i);
    if (function.body.inputs()[i] == body.x || value == nullptr ||
        operand == result_.epsilon_operand) {
      continue;
    }
    if (result_.scale != nullptr) {
      return Fail("{} has more operands than a norm", head_->Describe());
    }
    result_.scale = value;
    result_.scale_operand = operand;
  }
  return true;
}

bool NormSearch::BindEpsilonOfCall(const ir::Function& function,
                                   const NormMatch& body) {
  const auto& inputs = function.body.inputs();
  if (body.epsilon) {
    result_.epsilon_attribute = body.epsilon->reference;
    if (body.epsilon->reference.empty()) result_.epsilon = body.epsilon;
    return true;
  }
  if (body.epsilon_operand.node != nullptr) {
    const ir::Value* parameter = body.epsilon_operand.node->input(
        static_cast<size_t>(body.epsilon_operand.index));
    const auto found = std::find(inputs.begin(), inputs.end(), parameter);
    return BindEpsilon(head_, static_cast<int>(found - inputs.begin()));
  }
  if (body.epsilon_attribute.empty()) return true;
  const ir::Attribute* inner =
      body.epsilon_node->attribute(body.epsilon_attribute);
  if (inner != nullptr) result_.epsilon_attribute = inner->ref_attr_name;
  return true;
}

NormMatch NormSearch::Run(bool with_scale) {
  with_scale_ = with_scale;
  result_.x = StripCasts(head_->input(0));
  slots_.resize(kYSlot + 1);
  slots_[kXSlot].value = result_.x;
  static const PatternNode norm{.output = "y",
                                .op = "norm",
                                .is_rule = true,
                                .attributes = {},
                                .inputs = {"x"},
                                .constant = std::nullopt};
  if (!Solve({{&norm, {kXSlot}, kYSlot}})) return Failed();
  result_.needs_type = needs_type_;
  result_.uses_type |= uses_type_;
  result_.variant = fmt::format("{}", fmt::join(tags_, "_"));
  return result_;
}

NormMatch NormSearch::Failed() {
  result_.y = nullptr;
  result_.needs_type = needs_type_;
  result_.uses_type |= uses_type_;
  if (!failure_) return result_;
  result_.depth = failure_->depth;
  result_.reason = failure_->text;
  result_.is_unspecific = !failure_->is_condition;
  if (failure_->value == nullptr) return result_;
  const std::vector<std::string> readers = DescribeReaders(*failure_->value);
  result_.reason = fmt::format(
      "'{}' is read by {}, expected {}", failure_->value->name(),
      readers.empty() ? "nothing" : fmt::format("{}", fmt::join(readers, ", ")),
      fmt::join(failure_->expected, " or "));
  return result_;
}

}  // namespace addnorm::passes
