// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What must hold of a complete match: nothing inside is needed outside.
#include <algorithm>

#include "passes/norm_search.h"
#include "passes/operators.h"

namespace addnorm::passes {

bool NormSearch::Accept(ir::Value* y) {
  for (const ir::Node* node : operators_) {
    if (FindNormOperator(*node) == nullptr) continue;
    result_.epsilon_node = node;
    result_.epsilon_attribute = kEpsilonAttribute;
  }
  y = TakeTrailingCasts(y);
  TakeIdentitiesOfTypes();
  result_.nodes = operators_;
  result_.nodes.insert(result_.nodes.end(), casts_.begin(), casts_.end());
  for (const ir::Node* node : result_.nodes) {
    if (!CheckCopyable(*node)) return false;
  }
  if (!CheckInnerValues(y)) return false;
  result_.y = y;
  return true;
}

// One outside; in a called function, all up to its output, and Identities. A
// Cast back to float16 is taken too: whether ONNX Runtime drops such a pair
// depends on which Cast it sees first, and in one body that stays as it is.
ir::Value* NormSearch::TakeTrailingCasts(ir::Value* y) {
  ir::Node* cast = TrailingCast(*y);
  while (cast != nullptr) {
    casts_.push_back(cast);
    y = cast->output(0);
    ir::Node* next = TrailingCast(*y);
    const bool is_back = next != nullptr &&
                         CastTarget(*next) == ir::DataType::kFloat16 &&
                         CastTarget(*cast) != ir::DataType::kFloat16;
    cast = is_callee_ || is_back ? next : nullptr;
  }
  return y;
}

bool NormSearch::CheckCopyable(const ir::Node& node) {
  if (node.has_device_configurations)
    return Fail("{} has device configurations", node.Describe());
  for (const ir::Attribute& attribute : node.attributes) {
    const bool is_epsilon = &node == result_.epsilon_node &&
                            attribute.name == result_.epsilon_attribute;
    if (is_epsilon && !CheckEpsilonAttribute(node, attribute)) return false;
    if (!is_epsilon && !IsCopyable(attribute)) {
      return Fail("{}: attribute {} cannot be copied", node.Describe(),
                  attribute.name);
    }
  }
  return true;
}

bool NormSearch::CheckEpsilonAttribute(const ir::Node& node,
                                       const ir::Attribute& attribute) {
  if (!attribute.ref_attr_name.empty()) {
    return graph_->function() != nullptr ||  // each call says which
           Fail("{}: attribute {} is that of a function, and in none",
                node.Describe(), attribute.name);
  }
  if (const auto* number = attribute.get<float>())
    return CheckEpsilon(node, attribute.name, *number);
  return Fail("{}: attribute {} is not a float", node.Describe(),
              attribute.name);
}

bool NormSearch::CheckInnerValues(const ir::Value* y) {
  FindShared();
  for (const std::vector<ir::Node*>* nodes : {&operators_, &casts_}) {
    for (const ir::Node* node : *nodes) {
      if (Contains(result_.shared, node)) continue;
      for (const ir::Value* value : node->outputs()) {
        if (value == nullptr || value == y) continue;
        if (!CheckInnerValue(*value, *node)) return false;
      }
    }
  }
  return std::all_of(result_.shared.begin(), result_.shared.end(),
                     [&](const ir::Node* cast) { return CheckShared(*cast); });
}

// The Casts of x that others read too. One that a shared Cast reads is shared,
// so from the last Cast to the first until there is no other.
void NormSearch::FindShared() {
  result_.shared.clear();
  const auto is_new = [&](const ir::Node* cast) {
    return IsCastOfX(*cast) && !Contains(result_.shared, cast) &&
           IsNeededOutside(*cast->output(0));
  };
  for (auto cast = std::find_if(casts_.begin(), casts_.end(), is_new);
       cast != casts_.end();
       cast = std::find_if(casts_.begin(), casts_.end(), is_new)) {
    result_.shared.push_back(*cast);
  }
}

bool NormSearch::IsNeededOutside(const ir::Value& value) const {
  return value.is_graph_output() || value.is_pinned() ||
         std::any_of(value.uses().begin(), value.uses().end(),
                     [&](const ir::Use& use) { return IsOutside(use.node); });
}

bool NormSearch::CheckInnerValue(const ir::Value& value, const ir::Node& node) {
  // Whether a function's other results are needed, its calls say.
  const bool is_result = value.is_graph_output() && !is_callee_;
  if (&value != node.output(0)) {
    if (value.uses().empty() && !is_result) return true;
    return Fail("{}: output '{}' is needed elsewhere", node.Describe(),
                value.name());
  }
  if (is_result) {
    return Fail("'{}' inside the norm is a {}", value.name(),
                graph_->function() == nullptr ? "graph output"
                                              : "result of the function");
  }
  if (value.is_pinned()) {
    return Fail(
        "'{}' inside the norm is named in a quantization annotation or in "
        "training_info",
        value.name());
  }
  for (const ir::Use& use : value.uses()) {
    if (!IsOutside(use.node)) continue;
    if (use.node->graph() != graph_) {
      return Fail("'{}' inside the norm is captured by a subgraph",
                  value.name());
    }
    return Fail("'{}' inside the norm is read by {} too", value.name(),
                use.node->Describe());
  }
  return true;
}

bool NormSearch::IsCastOfX(const ir::Node& node) const {
  return StripCasts(node.input(0)) == result_.x;
}

// A Cast that alone reads the result is the norm's own last rounding.
ir::Node* NormSearch::TrailingCast(const ir::Value& y) const {
  if (y.is_graph_output() || y.is_pinned() || y.uses().size() != 1)
    return nullptr;
  const ir::Use use = y.uses()[0];
  ir::Node* cast = use.node;
  const bool is_outside = cast->Is("", "Identity") && !is_callee_;
  if (use.index != 0 || cast->graph() != graph_ || is_outside ||
      !IsFloatCast(model_, *cast)) {
    return nullptr;
  }
  const ir::Value* like = cast->input(1);
  return like == nullptr || IsOfNorm(*StripIdentities(like)) ? cast : nullptr;
}

// The Identities between the inner value whose type a CastLike reads and the
// CastLike.
void NormSearch::TakeIdentitiesOfTypes() {
  for (size_t i = 0; i < casts_.size(); ++i) {
    const ir::Value* like = casts_[i]->input(1);
    if (like == nullptr || !IsOfNorm(*StripIdentities(like))) continue;
    for (; IsIdentity(like->producer()); like = like->producer()->input(0)) {
      if (!Contains(casts_, like->producer()))
        casts_.push_back(like->producer());
    }
  }
}

bool NormSearch::IsIdentity(const ir::Node* node) const {
  return node != nullptr && node->graph() == graph_ &&
         node->Is("", "Identity") && IsFloatCast(model_, *node);
}

const ir::Value* NormSearch::StripIdentities(const ir::Value* value) const {
  for (int i = 0; i < kMaxCasts && IsIdentity(value->producer()); ++i)
    value = value->producer()->input(0);
  return value;
}

bool NormSearch::IsOfNorm(const ir::Value& value) const {
  return &value == result_.x ||
         (value.producer() != nullptr && IsInner(value.producer()));
}

}  // namespace addnorm::passes
