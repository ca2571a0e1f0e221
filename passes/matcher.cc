// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/matcher.h"

#include <algorithm>
#include <iterator>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/ir/check.h"
#include "passes/operators.h"
#include "passes/pattern.h"

namespace addnorm::passes {
namespace {

// Casts in a row between two steps; converters write two or three.
constexpr int kMaxCasts = 8;

// Functions that call functions that … are a norm.
constexpr int kMaxCallDepth = 16;

// A variable of the search: a value of the graph, or what a constant must
// equal.
struct Slot {
  ir::Value* value = nullptr;
  std::optional<double> constant;
};

// The roles have the first slots, then come x and y of the norm.
using SlotId = size_t;
constexpr SlotId kRoleSlots = std::size(kRoleNames);
constexpr SlotId kXSlot = kRoleSlots;
constexpr SlotId kYSlot = kRoleSlots + 1;

constexpr SlotId SlotOf(Role role) { return static_cast<SlotId>(role); }

// One pattern node still to be matched, its names resolved to slots.
struct Goal {
  const PatternNode* pattern = nullptr;
  std::vector<SlotId> inputs;
  SlotId output = 0;
};

// Goals still open, the next one last.
using Agenda = std::vector<Goal>;

bool Contains(const std::vector<ir::Node*>& nodes, const ir::Node* node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

class Search {
 public:
  // `argument`: in the body of a called function, the value that the call gives
  // it to norm. What is known of its type is known of the parameter's.
  Search(ir::Model& model, Constants& constants, ir::Node* head,
         const ir::Value* argument = nullptr)
      : model_(model),
        constants_(constants),
        head_(head),
        graph_(head->graph()),
        is_callee_(argument != nullptr),
        x_type_(is_callee_ ? argument->type
                           : StripCasts(head->input(0))->type) {}

  NormMatch Run();
  // The norm that a call is, if its function's body is the norm `body`.
  NormMatch RunCall(const ir::Function& function, const NormMatch& body);

 private:
  // What Undo returns to.
  struct Mark {
    size_t slots, operators, casts, tags;
    NormMatch result;
  };

  bool Solve(Agenda agenda);
  bool SolveRule(const Goal& goal, const Agenda& rest);
  bool SolveConstant(const Goal& goal, Agenda rest);
  bool SolveIdentity(const Goal& goal, Agenda rest);
  bool SolveOperator(const Goal& goal, const Agenda& rest);
  bool TryNode(const Goal& goal, ir::Node* node, bool swapped,
               const Agenda& rest);
  Agenda Expand(const PatternRow& row, const Goal& call, Agenda rest);

  bool BindOperands(const Goal& goal, ir::Node* node, bool swapped);
  bool BindOperand(const Goal& goal, SlotId slot, ir::Node* node, int index);
  bool BindRole(Role role, const Goal& goal, ir::Node* node, int index);
  bool BindScale(const Goal& goal, ir::Node* node, int index);
  bool BindEpsilon(ir::Node* node, int index);
  bool BindEpsilonOfCall(const ir::Function& function, const NormMatch& body);
  bool BindLength(Role role, const ir::Node& node, int index);
  bool BindConstant(double expected, const ir::Node& node, int index);
  void TakeCastLikes(const Resolution& resolution);
  bool FollowCasts(ir::Value* from, const ir::Value* to);
  bool CheckAttributes(const PatternNode& pattern, const ir::Node& node);
  bool CheckLastAxis(const ir::Node& node);
  bool CheckRankIs(const std::string& expected, const ir::Node& node);
  bool CheckRank(const Constant& constant, const ir::Value* value);
  bool CheckScaleShape(const ir::Value* scale, const ir::Value* normalised);

  bool Accept(ir::Value* y);
  bool CheckCopyable(const ir::Node& node);
  bool CheckInnerValues(const ir::Value* y);
  bool CheckInnerValue(const ir::Value& value, const ir::Node& node);
  bool IsCastOfX(const ir::Node& node) const;
  ir::Node* TrailingCast(const ir::Value& y) const;

  std::vector<ir::Node*> ReadersThroughCasts(ir::Value* value) const;
  std::optional<size_t> RankOf(const ir::Value* value);
  NormMatch Failed();
  Mark Save() const {
    return {slots_.size(), operators_.size(), casts_.size(), tags_.size(),
            result_};
  }
  void Undo(const Mark& mark);
  bool IsInner(const ir::Node* node) const {
    return Contains(operators_, node) || Contains(casts_, node);
  }

  // Records the reason if no deeper condition has failed yet. Always false.
  template <typename... Args>
  bool Fail(fmt::format_string<Args...> format, Args&&... args) {
    if (failure_depth_ && *failure_depth_ >= operators_.size()) return false;
    failure_depth_ = operators_.size();
    result_reason_ = fmt::format(format, std::forward<Args>(args)...);
    return false;
  }
  // Nothing of that kind reads the value: a weaker reason than a failed
  // condition.
  bool FailExpecting(const ir::Value& value, const std::string& op);

  ir::Model& model_;
  Constants& constants_;
  ir::Node* head_;
  ir::Graph* graph_;
  bool is_callee_;
  ir::TensorType x_type_;

  std::vector<Slot> slots_;
  std::vector<ir::Node*> operators_;
  std::vector<ir::Node*> casts_;
  std::vector<std::string_view> tags_;
  NormMatch result_;

  std::optional<size_t> failure_depth_;
  std::string result_reason_;
  // Deepest place where no reader had the right operator, and what was
  // expected.
  size_t expected_depth_ = 0;
  const ir::Value* expected_value_ = nullptr;
  std::vector<std::string> expected_ops_;
  bool needs_type_ = false;
};

void Search::Undo(const Mark& mark) {
  slots_.resize(mark.slots);
  operators_.resize(mark.operators);
  casts_.resize(mark.casts);
  tags_.resize(mark.tags);
  result_ = mark.result;
}

// ---- the search

bool Search::Solve(Agenda agenda) {
  if (agenda.empty()) return Accept(slots_[kYSlot].value);
  const Goal goal = std::move(agenda.back());
  agenda.pop_back();
  if (goal.pattern->is_rule) return SolveRule(goal, agenda);
  if (goal.pattern->constant) return SolveConstant(goal, std::move(agenda));
  if (goal.pattern->op == "Identity")
    return SolveIdentity(goal, std::move(agenda));
  return SolveOperator(goal, agenda);
}

bool Search::SolveRule(const Goal& goal, const Agenda& rest) {
  for (const PatternRow& row : RmsNormGrammar().at(goal.pattern->op)) {
    const Mark mark = Save();
    if (!row.variant->tag.empty()) tags_.push_back(row.variant->tag);
    if (Solve(Expand(row, goal, rest))) return true;
    Undo(mark);
  }
  return false;
}

// Replaces a call of a rule by the row's own nodes.
Agenda Search::Expand(const PatternRow& row, const Goal& call, Agenda rest) {
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

bool Search::SolveConstant(const Goal& goal, Agenda rest) {
  slots_[goal.output].constant = goal.pattern->constant;
  return Solve(std::move(rest));
}

// A row that does nothing: its result is its operand.
bool Search::SolveIdentity(const Goal& goal, Agenda rest) {
  slots_[goal.output].value = slots_[goal.inputs[0]].value;
  return Solve(std::move(rest));
}

bool Search::SolveOperator(const Goal& goal, const Agenda& rest) {
  // The bound operand that the fewest nodes read leads to the candidates.
  ir::Value* bound = nullptr;
  for (SlotId slot : goal.inputs) {
    ir::Value* value = slots_[slot].value;
    if (value == nullptr) continue;
    if (bound == nullptr || value->uses().size() < bound->uses().size())
      bound = value;
  }
  ADDNORM_CHECK(bound != nullptr,
                "a variant row's node reads nothing that is bound");
  const bool is_first = operators_.empty();
  const std::vector<ir::Node*> candidates =
      is_first ? std::vector<ir::Node*>{head_} : ReadersThroughCasts(bound);

  bool has_candidate = false;
  for (ir::Node* node : candidates) {
    if (!node->Is("", goal.pattern->op) || !IsStandardOp(model_, *node))
      continue;
    if (Contains(operators_, node)) continue;
    has_candidate = true;
    if (TryNode(goal, node, false, rest)) return true;
    if (IsCommutative(*node) && TryNode(goal, node, true, rest)) return true;
  }
  return has_candidate ? false : FailExpecting(*bound, goal.pattern->op);
}

bool Search::TryNode(const Goal& goal, ir::Node* node, bool swapped,
                     const Agenda& rest) {
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

// ---- one node

bool Search::BindOperands(const Goal& goal, ir::Node* node, bool swapped) {
  const size_t count = goal.inputs.size();
  const bool has_axes_operand =
      node->inputs().size() == count + 1 && IsReduction(*node);
  if (node->inputs().size() != count && !has_axes_operand) {
    return Fail("{} has {} operands, expected {}", node->Describe(),
                node->inputs().size(), count);
  }
  if (node->output(0) == nullptr)
    return Fail("{} has no output", node->Describe());
  for (size_t i = 0; i < count; ++i) {
    const size_t index = swapped ? count - 1 - i : i;
    if (!BindOperand(goal, goal.inputs[i], node, static_cast<int>(index)))
      return false;
  }
  return true;
}

bool Search::BindOperand(const Goal& goal, SlotId slot, ir::Node* node,
                         int index) {
  ir::Value* actual = node->input(static_cast<size_t>(index));
  if (actual == nullptr)
    return Fail("{} lacks operand {}", node->Describe(), index);
  if (slot < kRoleSlots)
    return BindRole(static_cast<Role>(slot), goal, node, index);
  if (slots_[slot].constant)
    return BindConstant(*slots_[slot].constant, *node, index);
  ADDNORM_CHECK(slots_[slot].value != nullptr,
                "a variant row's operand is not bound");
  if (FollowCasts(actual, slots_[slot].value)) return true;
  return Fail("{} reads '{}', expected '{}'", node->Describe(), actual->name(),
              slots_[slot].value->name());
}

bool Search::BindRole(Role role, const Goal& goal, ir::Node* node, int index) {
  switch (role) {
    case Role::kScale:
      return BindScale(goal, node, index);
    case Role::kEpsilon:
      return BindEpsilon(node, index);
    case Role::kLength:
    case Role::kInverseLength:
      return BindLength(role, *node, index);
  }
  return false;
}

// Walks from `from` up to `to` through Casts, which then belong to the match.
bool Search::FollowCasts(ir::Value* from, const ir::Value* to) {
  std::vector<ir::Node*> path;
  while (from != to) {
    ir::Node* producer = from->producer();
    if (producer == nullptr || producer->graph() != graph_ ||
        !IsFloatCast(model_, *producer) || path.size() == kMaxCasts) {
      return false;
    }
    path.push_back(producer);
    from = producer->input(0);
  }
  for (ir::Node* cast : path) {
    if (!Contains(casts_, cast)) casts_.push_back(cast);
  }
  return true;
}

bool Search::BindConstant(double expected, const ir::Node& node, int index) {
  const ir::Value* value = node.input(static_cast<size_t>(index));
  const Resolution resolution = constants_.Resolve(value);
  if (!resolution.constant)
    return Fail("{}: {}", node.Describe(), resolution.reason);
  const std::optional<double> scalar = resolution.constant->scalar();
  if (!scalar)
    return Fail("{}: '{}' is not a single element", node.Describe(),
                value->name());
  if (*scalar != expected) {
    return Fail("{}: '{}' is {}, expected {}", node.Describe(), value->name(),
                *scalar, expected);
  }
  TakeCastLikes(resolution);
  return CheckRank(*resolution.constant, value);
}

// A CastLike of a constant reads an inner value for its type: it goes with it.
void Search::TakeCastLikes(const Resolution& resolution) {
  for (ir::Node* node : resolution.chain) {
    if (node->Is("", "CastLike") && !Contains(casts_, node))
      casts_.push_back(node);
  }
}

bool Search::BindEpsilon(ir::Node* node, int index) {
  const ir::Value* value = node->input(static_cast<size_t>(index));
  result_.epsilon_operand = {node, index};
  if (is_callee_ && value->is_input())
    return true;  // each call says which constant
  Resolution resolution = constants_.Resolve(value);
  if (!resolution.constant) {
    return Fail("{}: epsilon: {}", node->Describe(), resolution.reason);
  }
  if (!resolution.constant->scalar() &&
      resolution.constant->reference.empty()) {
    return Fail("{}: epsilon '{}' is not a single element", node->Describe(),
                value->name());
  }
  if (!CheckRank(*resolution.constant, value)) return false;
  TakeCastLikes(resolution);
  result_.epsilon = std::move(resolution.constant);
  return true;
}

// A sum is a mean only if it is divided by the length that x has.
bool Search::BindLength(Role role, const ir::Node& node, int index) {
  const auto& shape = x_type_.shape;
  if (!shape || shape->empty() || !shape->back().value ||
      *shape->back().value <= 0) {
    needs_type_ = true;
    return Fail("{}: the length of the last axis of '{}' is unknown",
                node.Describe(), result_.x->name());
  }
  const auto length = static_cast<double>(*shape->back().value);
  if (role == Role::kLength) return BindConstant(length, node, index);
  const Resolution resolution =
      constants_.Resolve(node.input(static_cast<size_t>(index)));
  const bool is_float =
      resolution.constant &&
      resolution.constant->tensor.type == ir::DataType::kFloat;
  return BindConstant(is_float
                          ? static_cast<double>(static_cast<float>(1 / length))
                          : 1 / length,
                      node, index);
}

// A constant of one element keeps the shape only if its rank is not the higher
// one.
bool Search::CheckRank(const Constant& constant, const ir::Value* value) {
  if (constant.rank && *constant.rank <= 1) return true;
  const std::optional<size_t> rank = RankOf(result_.x);
  if (constant.rank && rank && *constant.rank <= *rank) return true;
  return Fail("'{}' may change the shape: its rank is {}, that of '{}' is {}",
              value->name(),
              constant.rank ? std::to_string(*constant.rank) : "unknown",
              result_.x->name(), rank ? std::to_string(*rank) : "unknown");
}

bool Search::BindScale(const Goal& goal, ir::Node* node, int index) {
  ir::Value* scale = node->input(static_cast<size_t>(index));
  const ir::Value* normalised = nullptr;
  for (SlotId slot : goal.inputs) {
    if (slot != SlotOf(Role::kScale)) normalised = slots_[slot].value;
  }
  if (StripCasts(scale) == StripCasts(const_cast<ir::Value*>(normalised))) {
    return Fail("{}: the scale is the normalised value itself",
                node->Describe());
  }
  if (!CheckScaleShape(scale, normalised)) return false;
  result_.scale = scale;
  result_.scale_operand = {node, index};
  return true;
}

// A weight must not enlarge the result, and is one row at most: [D], [1],
// [1,1,D].
bool Search::CheckScaleShape(const ir::Value* scale,
                             const ir::Value* normalised) {
  if (!scale->type.shape) {
    needs_type_ = true;
    return true;
  }
  const ir::Shape& weight = *scale->type.shape;
  for (size_t i = 0; i + 1 < weight.size(); ++i) {
    if (weight[i].value == 1) continue;
    return Fail("the scale '{}' is {}, not one row", scale->name(),
                ToString(weight));
  }
  const std::optional<size_t> rank = RankOf(normalised);
  if (weight.size() > 1 && (!rank || weight.size() > *rank)) {
    return Fail("the scale '{}' of rank {} may enlarge the result",
                scale->name(), weight.size());
  }
  const auto& x = x_type_.shape;
  const bool is_longer = !weight.empty() && x && !x->empty() &&
                         weight.back().value && *weight.back().value != 1 &&
                         x->back().value &&
                         *x->back().value != *weight.back().value;
  if (!is_longer) return true;
  return Fail("the scale '{}' is {} long, the last axis {}", scale->name(),
              *weight.back().value, *x->back().value);
}

bool Search::CheckAttributes(const PatternNode& pattern, const ir::Node& node) {
  for (const auto& [name, expected] : pattern.attributes) {
    if (name == "axes" || name == "axis") {
      if (!CheckLastAxis(node)) return false;
      continue;
    }
    if (name == "rank") {
      if (!CheckRankIs(expected, node)) return false;
      continue;
    }
    const std::optional<int64_t> actual = IntAttribute(node, name);
    if (!actual)
      return Fail("{}: attribute {} is not an integer", node.Describe(), name);
    if (std::to_string(*actual) != expected) {
      return Fail("{}: {} is {}, expected {}", node.Describe(), name, *actual,
                  expected);
    }
  }
  return true;
}

bool Search::CheckRankIs(const std::string& expected, const ir::Node& node) {
  const std::optional<size_t> rank = RankOf(node.input(0));
  if (rank && std::to_string(*rank) == expected) return true;
  return Fail("{}: the rank of '{}' is {}, expected {}", node.Describe(),
              node.input(0)->name(), rank ? std::to_string(*rank) : "unknown",
              expected);
}

bool Search::CheckLastAxis(const ir::Node& node) {
  const AxesOf axes = ReadAxes(node, constants_);
  if (!axes.reason.empty()) return Fail("{}: {}", node.Describe(), axes.reason);
  if (axes.values.size() != 1) {
    return Fail("{}: axes {} are not exactly the last axis", node.Describe(),
                axes.values);
  }
  const int64_t axis = axes.values[0];
  if (axis == -1) return true;
  const std::optional<size_t> rank = RankOf(node.input(0));
  if (axis >= 0 && !rank) {
    return Fail(
        "{}: axis {} may not be the last one, the rank of '{}' is unknown",
        node.Describe(), axis, node.input(0)->name());
  }
  if (axis >= 0 && axis == static_cast<int64_t>(*rank) - 1) return true;
  return Fail("{}: axis {} is not the last one", node.Describe(), axis);
}

// ---- the end of a match

bool Search::Accept(ir::Value* y) {
  for (const ir::Node* node : operators_) {
    if (FindNormOperator(*node) != nullptr)
      result_.epsilon_attribute = kEpsilonAttribute;
    if (!CheckCopyable(*node)) return false;
    if (node->has_device_configurations) {
      return Fail("{} has device configurations", node->Describe());
    }
  }
  if (ir::Node* cast = TrailingCast(*y)) {
    casts_.push_back(cast);
    y = cast->output(0);
  }
  if (!CheckInnerValues(y)) return false;
  result_.y = y;
  result_.nodes = operators_;
  result_.nodes.insert(result_.nodes.end(), casts_.begin(), casts_.end());
  return true;
}

bool Search::CheckCopyable(const ir::Node& node) {
  for (const ir::Attribute& attribute : node.attributes) {
    if (attribute.name != result_.epsilon_attribute) {
      if (IsCopyable(attribute)) continue;
      return Fail("{}: attribute {} cannot be copied", node.Describe(),
                  attribute.name);
    }
    if (attribute.get<float>() == nullptr && attribute.ref_attr_name.empty()) {
      return Fail("{}: attribute {} is not a float", node.Describe(),
                  attribute.name);
    }
  }
  return true;
}

bool Search::CheckInnerValues(const ir::Value* y) {
  result_.shared.clear();
  // From the last Cast to the first: one that a shared Cast reads is shared
  // too.
  for (bool changed = true; changed;) {
    changed = false;
    for (ir::Node* cast : casts_) {
      if (!IsCastOfX(*cast) || Contains(result_.shared, cast)) continue;
      const ir::Value& value = *cast->output(0);
      const bool is_shared =
          value.is_graph_output() || value.is_annotated() ||
          std::any_of(value.uses().begin(), value.uses().end(),
                      [&](const ir::Use& use) {
                        return !IsInner(use.node) ||
                               Contains(result_.shared, use.node);
                      });
      if (!is_shared) continue;
      result_.shared.push_back(cast);
      changed = true;
    }
  }
  for (const std::vector<ir::Node*>* nodes : {&operators_, &casts_}) {
    for (const ir::Node* node : *nodes) {
      if (Contains(result_.shared, node)) continue;
      for (const ir::Value* value : node->outputs()) {
        if (value == nullptr || value == y) continue;
        if (!CheckInnerValue(*value, *node)) return false;
      }
    }
  }
  return true;
}

bool Search::CheckInnerValue(const ir::Value& value, const ir::Node& node) {
  if (&value != node.output(0)) {
    if (value.uses().empty() && !value.is_graph_output()) return true;
    return Fail("{}: output '{}' is needed elsewhere", node.Describe(),
                value.name());
  }
  if (value.is_graph_output()) {
    return Fail("'{}' inside the norm is a graph output", value.name());
  }
  if (value.is_annotated()) {
    return Fail("'{}' inside the norm has a quantization annotation",
                value.name());
  }
  for (const ir::Use& use : value.uses()) {
    if (IsInner(use.node)) continue;
    if (use.node->graph() != graph_) {
      return Fail("'{}' inside the norm is captured by a subgraph",
                  value.name());
    }
    return Fail("'{}' inside the norm is read by {} too", value.name(),
                use.node->Describe());
  }
  return true;
}

bool Search::IsCastOfX(const ir::Node& node) const {
  return StripCasts(node.input(0)) == result_.x;
}

// A Cast that alone reads the result is the norm's own last rounding.
ir::Node* Search::TrailingCast(const ir::Value& y) const {
  if (y.is_graph_output() || y.is_annotated() || y.uses().size() != 1)
    return nullptr;
  const ir::Use use = y.uses()[0];
  ir::Node* cast = use.node;
  if (use.index != 0 || cast->graph() != graph_ || cast->Is("", "Identity") ||
      !IsFloatCast(model_, *cast)) {
    return nullptr;
  }
  const ir::Value* like = cast->input(1);
  if (like == nullptr || like == result_.x) return cast;
  return like->producer() != nullptr && IsInner(like->producer()) ? cast
                                                                  : nullptr;
}

// ---- facts and reasons

std::vector<ir::Node*> Search::ReadersThroughCasts(ir::Value* value) const {
  std::vector<ir::Node*> readers;
  std::vector<ir::Value*> front{value};
  for (int depth = 0; depth <= kMaxCasts && !front.empty(); ++depth) {
    std::vector<ir::Value*> next;
    for (const ir::Value* v : front) {
      for (const ir::Use& use : v->uses()) {
        if (use.node->graph() != graph_) continue;
        readers.push_back(use.node);
        if (use.index == 0 && IsFloatCast(model_, *use.node))
          next.push_back(use.node->output(0));
      }
    }
    front = std::move(next);
  }
  std::sort(
      readers.begin(), readers.end(),
      [](const ir::Node* a, const ir::Node* b) { return a->order < b->order; });
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  return readers;
}

std::optional<size_t> Search::RankOf(const ir::Value* value) {
  // Elementwise steps and Casts keep the rank of x.
  if (value->type.shape) return value->type.shape->size();
  if (x_type_.shape) return x_type_.shape->size();
  needs_type_ = true;
  return std::nullopt;
}

bool Search::FailExpecting(const ir::Value& value, const std::string& op) {
  const size_t depth = operators_.size();
  if (expected_value_ != nullptr && expected_depth_ > depth) return false;
  if (expected_value_ != &value) expected_ops_.clear();
  expected_depth_ = depth;
  expected_value_ = &value;
  if (std::find(expected_ops_.begin(), expected_ops_.end(), op) ==
      expected_ops_.end()) {
    expected_ops_.push_back(op);
  }
  return false;
}

// Gives a call what the body of its function was matched as.
NormMatch Search::RunCall(const ir::Function& function, const NormMatch& body) {
  const auto index_of = [&](const ir::Value* parameter) {
    const auto& inputs = function.body.inputs();
    return static_cast<size_t>(
        std::find(inputs.begin(), inputs.end(), parameter) - inputs.begin());
  };
  operators_ = {head_};
  result_.x = StripCasts(head_->input(index_of(body.x)));
  result_.variant = body.variant.empty() ? "call" : "call_" + body.variant;
  if (const size_t i = index_of(body.scale); i < head_->inputs().size()) {
    result_.scale = head_->input(i);
    result_.scale_operand = {head_, static_cast<int>(i)};
  }
  if (!BindEpsilonOfCall(function, body)) return Failed();
  FollowCasts(head_->input(index_of(body.x)), result_.x);
  return Accept(head_->output(0)) ? result_ : Failed();
}

bool Search::BindEpsilonOfCall(const ir::Function& function,
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
  const ir::Attribute* inner = body.nodes[0]->attribute(body.epsilon_attribute);
  if (inner != nullptr) result_.epsilon_attribute = inner->ref_attr_name;
  return true;
}

NormMatch Search::Run() {
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
  result_.variant = fmt::format("{}", fmt::join(tags_, "_"));
  return result_;
}

NormMatch Search::Failed() {
  result_.y = nullptr;
  result_.needs_type = needs_type_;
  result_.depth = failure_depth_.value_or(0);
  result_.reason = result_reason_;
  if (expected_value_ != nullptr &&
      (!failure_depth_ || expected_depth_ > *failure_depth_)) {
    std::vector<std::string> readers;
    for (const ir::Use& use : expected_value_->uses())
      readers.push_back(use.node->op_type());
    std::sort(readers.begin(), readers.end());
    result_.depth = expected_depth_;
    result_.reason = fmt::format(
        "'{}' is read by {}, expected {}", expected_value_->name(),
        readers.empty() ? "nothing"
                        : fmt::format("{}", fmt::join(readers, ", ")),
        fmt::join(expected_ops_, " or "));
  }
  return result_;
}

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
    return Search(model_, constants_, head).Run();
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
  return Search(model_, constants_, call).RunCall(*function, body);
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
                          ? Search(model_, constants_, head, argument).Run()
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
