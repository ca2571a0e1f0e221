// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/node_signatures.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "onnx/defs/schema.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"

namespace addnorm::proto {
namespace {

using onnx::OpSchema;

// Without absent ones at the end, which are as good as not there.
size_t CountOf(const std::vector<ir::Value*>& values) {
  size_t count = values.size();
  while (count > 0 && values[count - 1] == nullptr) --count;
  return count;
}

std::string RangeText(int least, int most) {
  if (most == std::numeric_limits<int>::max())
    return fmt::format("at least {}", least);
  return least == most ? fmt::format("{}", least)
                       : fmt::format("{} to {}", least, most);
}

absl::Status CheckOperands(const ir::Node& node, const OpSchema& schema) {
  const size_t count = CountOf(node.inputs());
  const auto least = static_cast<size_t>(schema.min_input());
  // Optional ones before others (Loop's) are written as absent ones.
  if (count > static_cast<size_t>(schema.max_input()) ||
      node.inputs().size() < least) {
    return InvalidModel("has {} operands, expected {}", count,
                        RangeText(schema.min_input(), schema.max_input()));
  }
  for (size_t i = 0; i < least; ++i) {
    if (node.input(i) != nullptr) continue;
    const OpSchema::FormalParameter& formal =
        schema.inputs()[std::min(i, schema.inputs().size() - 1)];
    if (formal.GetOption() == OpSchema::Optional) continue;
    return InvalidModel("operand {} ('{}') is missing", i, formal.GetName());
  }
  return absl::OkStatus();
}

absl::Status CheckResults(const ir::Node& node, const OpSchema& schema) {
  // Those that are not named count, but for the most.
  if (node.outputs().size() >= static_cast<size_t>(schema.min_output()) &&
      CountOf(node.outputs()) <= static_cast<size_t>(schema.max_output()))
    return absl::OkStatus();
  return InvalidModel("has {} results, expected {}", node.outputs().size(),
                      RangeText(schema.min_output(), schema.max_output()));
}

// Names that begin so are for tools, as in ONNX's own checker.
bool IsPrivate(std::string_view name) { return name.starts_with("__"); }

absl::Status CheckAttributes(const ir::Node& node, const OpSchema& schema) {
  std::set<std::string_view> known;  // in a fixed order, for the error
  for (const auto& [name, formal] : schema.attributes()) known.insert(name);
  for (const ir::Attribute& attribute : node.attributes) {
    if (known.contains(attribute.name) || IsPrivate(attribute.name)) continue;
    return InvalidModel(
        "has an attribute '{}', expected {}", ir::Printable(attribute.name),
        known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
  }
  for (const std::string_view name : known) {
    const OpSchema::Attribute& formal =
        schema.attributes().at(std::string(name));
    if (!formal.required || node.attribute(name) != nullptr) continue;
    return InvalidModel(
        "attribute '{}' is missing, expected a value of type {}", name,
        absl::AsciiStrToLower(
            onnx::AttributeProto_AttributeType_Name(formal.type)));
  }
  return absl::OkStatus();
}

absl::Status CheckNode(const ir::Node& node, const OpSchema& schema) {
  RETURN_IF_ERROR(CheckOperands(node, schema));
  RETURN_IF_ERROR(CheckResults(node, schema));
  return CheckAttributes(node, schema);
}

class SignatureChecker {
 public:
  explicit SignatureChecker(const ir::Model& model) : model_(model) {}

  absl::Status Run() {
    RETURN_IF_ERROR(CheckGraph(model_.graph));
    for (const ir::Function& function : model_.functions) {
      const absl::Status status = CheckGraph(function.body);
      if (!status.ok())
        return WithContext(
            status, fmt::format("function '{}'", ir::Printable(function.name)));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckGraph(const ir::Graph& graph) {
    for (const ir::Node& node : graph.nodes()) {
      if (const OpSchema* schema = SchemaOf(node)) {
        const absl::Status status = CheckNode(node, *schema);
        if (!status.ok()) {
          return WithContext(status, fmt::format("{} (of version {})",
                                                 ir::Printable(node.Describe()),
                                                 schema->since_version()));
        }
      }
      for (const ir::Graph* inner : node.subgraphs())
        RETURN_IF_ERROR(CheckGraph(*inner));
    }
    return absl::OkStatus();
  }

  // nullptr for a node that is not judged.
  const OpSchema* SchemaOf(const ir::Node& node) const {
    if (model_.FindFunction(node.domain(), node.op_type(), node.overload) !=
        nullptr)
      return nullptr;
    const OpSchema* schema = onnx::OpSchemaRegistry::Schema(
        node.op_type(), static_cast<int>(ir::OpsetOf(node)), node.domain());
    return schema == nullptr || schema->Deprecated() ? nullptr : schema;
  }

  const ir::Model& model_;
};

}  // namespace

absl::Status CheckNodeSignatures(const ir::Model& model) {
  return SignatureChecker(model).Run();
}

}  // namespace addnorm::proto
