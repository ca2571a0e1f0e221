// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/operators.h"

#include <algorithm>
#include <iterator>

#include "fmt/format.h"

namespace addnorm::passes {
namespace {

struct AttributeDefault {
  std::string_view op;
  std::string_view attribute;
  int64_t value;
};

// From the operators' schemas, onnx/defs.
constexpr AttributeDefault kDefaults[] = {
    {"ReduceMean", "keepdims", 1},
    {"ReduceSum", "keepdims", 1},
    {"ReduceSumSquare", "keepdims", 1},
    {"RMSNormalization", "axis", -1},
    {"RMSNormalization", "stash_type", 1},
    {"SimplifiedLayerNormalization", "axis", -1},
};

constexpr NormOperator kNormOperators[] = {
    {"RMSNormalization", 1e-5F, 1},
    {"SimplifiedLayerNormalization", 1e-5F, 1},
};

}  // namespace

bool IsStandardOp(const ir::Model& model, const ir::Node& node) {
  return node.domain().empty() && node.overload.empty() &&
         (model.functions.empty() ||
          model.FindFunction("", node.op_type()) == nullptr);
}

bool IsFloatCast(const ir::Model& model, const ir::Node& node) {
  if (node.outputs().size() != 1 || node.output(0) == nullptr ||
      node.input(0) == nullptr || !IsStandardOp(model, node)) {
    return false;
  }
  if (node.op_type() == "Identity" || node.op_type() == "CastLike") return true;
  if (node.op_type() != "Cast") return false;
  const std::optional<int64_t> to = IntAttribute(node, "to");
  return to && ir::IsFloat(static_cast<ir::DataType>(*to));
}

ir::DataType CastTarget(const ir::Node& cast) {
  if (cast.op_type() == "Cast")
    return static_cast<ir::DataType>(IntAttribute(cast, "to").value_or(0));
  const ir::Value* like = cast.input(1);
  const ir::TensorType& own = cast.output(0)->type;
  return own.known() || like == nullptr ? own.element : like->type.element;
}

bool IsCommutative(const ir::Node& node) {
  return node.op_type() == "Add" || node.op_type() == "Mul";
}

bool IsReduction(const ir::Node& node) {
  return node.op_type().starts_with("Reduce");
}

bool IsCopyable(const ir::Attribute& attribute) {
  if (!attribute.ref_attr_name.empty()) return false;
  if (const auto* tensor = attribute.get<ir::Tensor>())
    return tensor->inline_bytes() != nullptr;
  return attribute.get<int64_t>() != nullptr ||
         attribute.get<float>() != nullptr ||
         attribute.get<std::string>() != nullptr ||
         attribute.get<std::vector<int64_t>>() != nullptr ||
         attribute.get<std::vector<float>>() != nullptr;
}

std::optional<int64_t> IntAttribute(const ir::Node& node,
                                    std::string_view name) {
  if (const ir::Attribute* attribute = node.attribute(name)) {
    const auto* value = attribute->get<int64_t>();
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  for (const AttributeDefault& row : kDefaults) {
    if (row.op == node.op_type() && row.attribute == name) return row.value;
  }
  return std::nullopt;
}

const NormOperator* FindNormOperator(const ir::Node& node) {
  return node.domain().empty() ? FindNormOperator(node.op_type()) : nullptr;
}

const NormOperator* FindNormOperator(std::string_view op) {
  const auto* found =
      std::find_if(std::begin(kNormOperators), std::end(kNormOperators),
                   [op](const NormOperator& row) { return row.op == op; });
  return found == std::end(kNormOperators) ? nullptr : found;
}

AxesOf ReadAxes(const ir::Node& node, Constants& constants) {
  if (!IsReduction(node)) {
    const std::optional<int64_t> axis = IntAttribute(node, "axis");
    return axis ? AxesOf{{*axis}, ""}
                : AxesOf{{}, "attribute axis is not an integer"};
  }
  if (const ir::Attribute* attribute = node.attribute("axes")) {
    const auto* values = attribute->get<std::vector<int64_t>>();
    return values == nullptr
               ? AxesOf{{}, "attribute axes is not a list of integers"}
               : AxesOf{*values, ""};
  }
  const ir::Value* operand = node.input(1);
  if (operand == nullptr) return {{}, "has no axes, so it reduces all of them"};
  const Resolution resolution = constants.Resolve(operand);
  if (!resolution.constant) return {{}, "axes: " + resolution.reason};
  const auto values = resolution.constant->integers();
  for (const ir::Node* step : resolution.chain) {
    if (step->Is("", "Cast") || step->Is("", "CastLike"))
      return {{}, fmt::format("axes '{}' are cast", operand->name())};
  }
  if (!values)
    return {{}, fmt::format("axes '{}' are not integers", operand->name())};
  return {*values, ""};
}

}  // namespace addnorm::passes
