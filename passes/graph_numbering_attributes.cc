// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of GraphNumbering that makes keys of attributes, graphs included.
#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/graph_numbering.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"

namespace addnorm::passes {
namespace {

bool HoldsGraphs(const ir::Attribute& attribute) {
  return attribute.get<std::unique_ptr<ir::Graph>>() != nullptr ||
         attribute.get<std::vector<std::unique_ptr<ir::Graph>>>() != nullptr;
}

// What is given by a reference to nothing is not given: the function's default
// counts then.
const ir::Attribute* ResolveIn(const ir::Attribute& attribute,
                               const CallScope* scope) {
  const std::string& name = attribute.ref_attr_name;
  if (name.empty() || scope == nullptr) return &attribute;
  const ir::Attribute* given = scope->call->attribute(name);
  if (given != nullptr) given = ResolveIn(*given, scope->outer);
  return given != nullptr ? given : scope->function->FindDefault(name);
}

std::string BytesOf(const void* data, size_t size) {
  return std::string(static_cast<const char*>(data), size);
}

}  // namespace

const ir::Attribute* GraphNumbering::Resolve(
    const ir::Attribute& attribute) const {
  return ResolveIn(attribute, call_);
}

absl::StatusOr<std::string> GraphNumbering::GraphKey(const ir::Graph& graph) {
  GraphNumbering inner(numbering_, model_, side_, call_, this, depth_ + 1);
  inner.SetCallDepth(call_depth_);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    Expression expression;
    expression.label = fmt::format("input {} of a subgraph", i);
    expression.values[side_] = graph.inputs()[i];
    inner.Set(graph.inputs()[i],
              numbering_.Intern(fmt::format("parameter {} {}", inner.depth_, i),
                                std::move(expression)));
  }
  RETURN_IF_ERROR(inner.Run(graph));
  return fmt::format("graph {} ({})", graph.inputs().size(),
                     fmt::join(inner.Outputs(graph), ","));
}

absl::StatusOr<std::string> GraphNumbering::ValueKey(
    const ir::Attribute& attribute) {
  if (const auto* graph = attribute.get<std::unique_ptr<ir::Graph>>())
    return GraphKey(**graph);
  if (const auto* tensor = attribute.get<ir::Tensor>()) {
    ASSIGN_OR_RETURN(const Number number, NumberTensor(*tensor, nullptr));
    return fmt::format("tensor {}", number);
  }
  if (const auto* value = attribute.get<float>())
    return fmt::format("float {:08x}", std::bit_cast<uint32_t>(*value));
  if (const auto* values = attribute.get<std::vector<float>>())
    return "floats " + BytesOf(values->data(), values->size() * sizeof(float));
  if (const auto* value = attribute.get<std::string>())
    return "string " + Quoted(*value);
  if (const auto* values = attribute.get<std::vector<std::string>>()) {
    std::string key = "strings";
    for (const std::string& value : *values) key += " " + Quoted(value);
    return key;
  }
  if (const auto* graphs =
          attribute.get<std::vector<std::unique_ptr<ir::Graph>>>()) {
    std::string key = "graphs";
    for (const auto& graph : *graphs) {
      ASSIGN_OR_RETURN(const std::string one, GraphKey(*graph));
      key += " " + Quoted(one);
    }
    return key;
  }
  if (const auto* tensors = attribute.get<std::vector<ir::Tensor>>()) {
    std::string key = "tensors";
    for (const ir::Tensor& tensor : *tensors) {
      ASSIGN_OR_RETURN(const Number number, NumberTensor(tensor, nullptr));
      key += fmt::format(" {}", number);
    }
    return key;
  }
  if (const auto* opaque = attribute.get<ir::OpaqueAttribute>()) {
    ASSIGN_OR_RETURN(const Number number,
                     NumberTensor(opaque->message, nullptr));
    return fmt::format("opaque {}", number);
  }
  return ir::ToString(attribute);
}

// Attributes by name, without those that say what is so without them: the
// function's defaults, or without a function the operator's.
absl::StatusOr<std::string> GraphNumbering::AttributesKey(
    const ir::Node& node, const ir::Function* function, std::string& label) {
  std::vector<std::pair<std::string, std::string>> given;
  for (const ir::Attribute& attribute : node.attributes) {
    const ir::Attribute* resolved = Resolve(attribute);
    if (resolved == nullptr) continue;
    if (resolved != &attribute && HoldsGraphs(*resolved)) {
      return absl::UnimplementedError(
          fmt::format("attribute '{}': graphs that are passed by reference are "
                      "not compared",
                      ir::Printable(attribute.name)));
    }
    ASSIGN_OR_RETURN(std::string value, ValueKey(*resolved));
    const ir::Attribute* fallback =
        function != nullptr
            ? function->FindDefault(attribute.name)
            : numbering_.schemas_.Default(node.domain(), node.op_type(),
                                          ir::OpsetOf(node), attribute.name);
    if (fallback != nullptr) {
      ASSIGN_OR_RETURN(const std::string default_value, ValueKey(*fallback));
      if (default_value == value) continue;
    }
    label += fmt::format("{}{} = {}", label.empty() ? "<" : ", ",
                         ir::Printable(attribute.name),
                         ir::Printable(ir::ToString(*resolved)));
    given.emplace_back(attribute.name, std::move(value));
  }
  if (!label.empty()) label += ">";
  std::sort(given.begin(), given.end());
  std::string key;
  for (const auto& [name, value] : given)
    key += " " + Quoted(name) + Quoted(value);
  return key;
}

}  // namespace addnorm::passes
