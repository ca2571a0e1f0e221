// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// One node against one pattern node: operands, roles, attributes.
#include <algorithm>
#include <cmath>

#include "fmt/ranges.h"
#include "passes/ir/check.h"
#include "passes/norm_search.h"
#include "passes/operators.h"

namespace addnorm::passes {

bool NormSearch::BindOperands(const Goal& goal, ir::Node* node, bool swapped) {
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

bool NormSearch::BindOperand(const Goal& goal, SlotId slot, ir::Node* node,
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
  return FailWeakly("{} reads '{}', expected '{}'", node->Describe(),
                    actual->name(), slots_[slot].value->name());
}

bool NormSearch::BindRole(Role role, const Goal& goal, ir::Node* node,
                          int index) {
  switch (role) {
    case Role::kScale:
      return BindScale(goal, node, index);
    case Role::kRowScale:
      return CheckIsRow(*node, index) && BindScale(goal, node, index);
    case Role::kEpsilon:
      return BindEpsilon(node, index);
    case Role::kLength:
    case Role::kInverseLength:
      return BindLength(role, *node, index);
  }
  return false;
}

// Walks from `from` up to `to` through Casts, which then belong to the match.
bool NormSearch::FollowCasts(ir::Value* from, const ir::Value* to) {
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

bool NormSearch::BindConstant(double expected, const ir::Node& node,
                              int index) {
  const ir::Value* value = node.input(static_cast<size_t>(index));
  const Resolution resolution = constants_.Resolve(value);
  if (!resolution.constant)
    return FailWeakly("{}: {}", node.Describe(), resolution.reason);
  const std::optional<double>& scalar = resolution.constant->scalar;
  if (!scalar)
    return Fail("{}: '{}' is not a single element", node.Describe(),
                value->name());
  if (*scalar != expected) {
    return Fail("{}: '{}' is {}, expected {}", node.Describe(), value->name(),
                *scalar, expected);
  }
  return TakeChain(resolution) && CheckRank(*resolution.constant, value);
}

// They are copied into the body, so they must be copyable; a CastLike reads an
// inner value for its type, so it goes with the norm.
bool NormSearch::TakeChain(const Resolution& resolution) {
  for (ir::Node* node : resolution.chain) {
    if (!CheckCopyable(*node)) return false;
    if (node->Is("", "CastLike") && !Contains(casts_, node))
      casts_.push_back(node);
  }
  const ir::Node* root = resolution.constant->root->producer();
  return root == nullptr || !root->has_device_configurations ||
         Fail("{} has device configurations", root->Describe());
}

bool NormSearch::BindEpsilon(ir::Node* node, int index) {
  const ir::Value* value = node->input(static_cast<size_t>(index));
  result_.epsilon_operand = {node, index};
  if (is_callee_ && value->is_input())
    return true;  // each call says which constant
  Resolution resolution = constants_.Resolve(value);
  if (!resolution.constant) {
    return Fail("{}: epsilon: {}", node->Describe(), resolution.reason);
  }
  if (!resolution.constant->root_scalar() &&
      resolution.constant->reference.empty()) {
    return Fail("{}: epsilon '{}' is not a single element", node->Describe(),
                value->name());
  }
  const std::optional<double> number = resolution.constant->root_scalar();
  if (number && !CheckEpsilon(*node, value->name(), *number)) return false;
  if (!CheckRank(*resolution.constant, value)) return false;
  if (!TakeChain(resolution)) return false;
  result_.epsilon = std::move(resolution.constant);
  return true;
}

// No RMSNorm is defined with another epsilon: rows would have no root.
bool NormSearch::CheckEpsilon(const ir::Node& node, std::string_view name,
                              double number) {
  if (number >= 0 && std::isfinite(number)) return true;
  return Fail("{}: epsilon '{}' is {}, not a finite number from 0 on",
              node.Describe(), name, number);
}

// A sum is a mean only if it is divided by the length that x has.
bool NormSearch::BindLength(Role role, const ir::Node& node, int index) {
  uses_type_ = true;
  if (!rows_.length || *rows_.length <= 0) {
    needs_type_ = true;
    return Fail("{}: the length of the last axis of '{}' is unknown",
                node.Describe(), result_.x->name());
  }
  const auto length = static_cast<double>(*rows_.length);
  if (role == Role::kLength) return BindConstant(length, node, index);
  const Resolution resolution =
      constants_.Resolve(node.input(static_cast<size_t>(index)));
  const double inverse =
      resolution.constant
          ? RoundTo(1 / length, resolution.constant->tensor.type)
          : 1 / length;
  return BindConstant(inverse, node, index);
}

// A constant of one element keeps the shape only if its rank is not the higher
// one.
bool NormSearch::CheckRank(const Constant& constant, const ir::Value* value) {
  if (constant.rank && *constant.rank <= 1) return true;
  const std::optional<size_t> rank = RankOf(result_.x);
  if (constant.rank && rank && *constant.rank <= *rank) return true;
  return Fail("'{}' may change the shape: its rank is {}, that of '{}' is {}",
              value->name(),
              constant.rank ? std::to_string(*constant.rank) : "unknown",
              result_.x->name(), rank ? std::to_string(*rank) : "unknown");
}

// The inverse root times a number is another numerator, not a weight.
bool NormSearch::CheckIsRow(const ir::Node& node, int index) {
  const ir::Value* scale = node.input(static_cast<size_t>(index));
  const Resolution resolution = constants_.Resolve(scale);
  if (!resolution.constant ||
      resolution.constant->tensor.element_count() != 1) {
    return true;
  }
  return FailWeakly("{}: '{}' is one element, not a weight", node.Describe(),
                    scale->name());
}

bool NormSearch::BindScale(const Goal& goal, ir::Node* node, int index) {
  if (!with_scale_) return FailWeakly("a norm without a scale is asked for");
  ir::Value* scale = node->input(static_cast<size_t>(index));
  ir::Value* normalised = nullptr;
  for (SlotId slot : goal.inputs) {
    if (slot >= kRoleSlots) normalised = slots_[slot].value;
  }
  if (StripCasts(scale) == StripCasts(normalised)) {
    return FailWeakly("{}: the scale is the normalised value itself",
                      node->Describe());
  }
  if (!CheckScaleShape(scale, normalised)) return false;
  result_.scale = scale;
  result_.scale_operand = {node, index};
  return true;
}

// A weight must not enlarge the result, and is one row at most: [D], [1],
// [1,1,D].
bool NormSearch::CheckScaleShape(const ir::Value* scale,
                                 const ir::Value* normalised) {
  if (!scale->type.shape) {
    needs_type_ = true;
    return true;
  }
  const ir::Shape& weight = *scale->type.shape;
  for (size_t i = 0; i + 1 < weight.size(); ++i) {
    if (weight[i].value == 1) continue;
    return FailWeakly("the scale '{}' is {}, not one row", scale->name(),
                      ToString(weight));
  }
  const std::optional<size_t> rank = RankOf(normalised);
  if (weight.size() > 1 && (!rank || weight.size() > *rank)) {
    return FailWeakly("the scale '{}' of rank {} may enlarge the result",
                      scale->name(), weight.size());
  }
  return weight.empty() || CheckScaleLength(*scale, weight.back());
}

bool NormSearch::CheckScaleLength(const ir::Value& scale,
                                  const ir::Dimension& length) {
  const auto& x = ShapeOfX();
  if (!x || x->empty() || !x->back().value || length.value == 1) return true;
  const int64_t expected = *x->back().value;
  if (length.value) {
    return *length.value == expected ||
           FailWeakly("the scale '{}' is {} long, the last axis {}",
                      scale.name(), *length.value, expected);
  }
  if (expected != 1) return true;
  needs_type_ = true;
  return FailWeakly("the scale '{}' of unknown length may enlarge the result",
                    scale.name());
}

bool NormSearch::CheckAttributes(const PatternNode& pattern,
                                 const ir::Node& node) {
  for (const auto& [name, expected] : pattern.attributes) {
    if (name == "axes" || name == "axis") {
      if (!CheckLastAxis(node)) return false;
      continue;
    }
    if (name == "value") {
      if (!CheckFill(expected, node)) return false;
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

// What a ConstantOfShape fills with; zero where it does not say.
bool NormSearch::CheckFill(const std::string& expected, const ir::Node& node) {
  Constant fill;
  if (const ir::Attribute* attribute = node.attribute("value")) {
    if (const auto* tensor = attribute->get<ir::Tensor>())
      fill.tensor = *tensor;
  }
  const std::optional<double> value = fill.root_scalar();
  if (value && fmt::format("{}", *value) == expected) return true;
  return Fail("{}: fills with {}, expected {}", node.Describe(),
              value ? fmt::format("{}", *value) : "another value", expected);
}

bool NormSearch::CheckRankIs(const std::string& expected,
                             const ir::Node& node) {
  const std::optional<size_t> rank = RankOf(node.input(0));
  if (rank && std::to_string(*rank) == expected) return true;
  return Fail("{}: the rank of '{}' is {}, expected {}", node.Describe(),
              node.input(0)->name(), rank ? std::to_string(*rank) : "unknown",
              expected);
}

bool NormSearch::CheckLastAxis(const ir::Node& node) {
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

}  // namespace addnorm::passes
