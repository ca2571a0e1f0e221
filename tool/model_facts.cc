// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/model_facts.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "fmt/format.h"
#include "passes/fused_op.h"
#include "passes/ir/printable.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

using Json = nlohmann::ordered_json;

bool IsFusedBody(const ir::Graph& graph) {
  return graph.function() != nullptr &&
         graph.function()->domain == passes::kFusedDomain;
}

std::string Qualified(const std::string& domain, const std::string& name) {
  return domain.empty() ? name : fmt::format("{}.{}", domain, name);
}

uint64_t ByteSize(const ir::Tensor& tensor) {
  if (const std::string* bytes = tensor.inline_bytes()) return bytes->size();
  const std::optional<int64_t> count = tensor.element_count();
  const std::optional<int> bits = ir::BitWidth(tensor.type);
  if (!count || !bits) return 0;
  // Elements may be smaller than a byte; eight of them never end within one.
  const auto elements = static_cast<uint64_t>(*count);
  const auto width = static_cast<uint64_t>(*bits);
  return elements / 8 * width + (elements % 8 * width + 7) / 8;
}

void AddWeights(const ir::Graph& graph, ModelFacts& facts) {
  for (const ir::Value* value : graph.values()) {
    const ir::Tensor* tensor = value->initializer();
    if (tensor == nullptr) continue;
    const bool is_external =
        std::holds_alternative<ir::ExternalElements>(tensor->elements);
    WeightFacts& weights = is_external ? facts.external : facts.embedded;
    ++weights.count;
    weights.bytes += ByteSize(*tensor);
  }
}

std::vector<std::pair<std::string, std::string>> Signature(
    const std::vector<ir::Value*>& values) {
  std::vector<std::pair<std::string, std::string>> signature;
  signature.reserve(values.size());
  for (const ir::Value* value : values) {
    signature.emplace_back(value->name(), ir::ToString(value->type));
  }
  return signature;
}

std::string Opsets(const ModelFacts& facts) {
  std::string text;
  for (const auto& [domain, version] : facts.opsets) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                        domain.empty() ? "ai.onnx" : ir::Printable(domain),
                        version);
  }
  return text;
}

// "pytorch 2.5.1"
std::string Producer(const ModelFacts& facts) {
  const bool has_both =
      !facts.producer_name.empty() && !facts.producer_version.empty();
  return ir::Printable(facts.producer_name + (has_both ? " " : "") +
                       facts.producer_version);
}

std::string Weights(const WeightFacts& weights) {
  return fmt::format("{}, {}", Plural(weights.count, "tensor"),
                     FormatBytes(weights.bytes));
}

Json SignatureToJson(
    const std::vector<std::pair<std::string, std::string>>& signature) {
  Json rows = Json::array();
  for (const auto& [name, type] : signature)
    rows.push_back({{"name", name}, {"type", type}});
  return rows;
}

Json WeightsToJson(const WeightFacts& weights) {
  return {{"count", weights.count}, {"bytes", weights.bytes}};
}

}  // namespace

std::string OpName(const ir::Node& node) {
  return Qualified(node.domain(), node.op_type());
}

OpCounts CountOps(ir::Model& model) {
  OpCounts counts;
  for (const ir::Graph* graph : model.AllGraphs()) {
    if (IsFusedBody(*graph)) continue;
    for (const ir::Node& node : graph->nodes()) ++counts[OpName(node)];
  }
  return counts;
}

int64_t Total(const OpCounts& counts) {
  int64_t total = 0;
  for (const auto& [op, count] : counts) total += count;
  return total;
}

ModelFacts GatherFacts(ir::Model& model) {
  ModelFacts facts{.ir_version = model.ir_version,
                   .producer_name = model.producer_name,
                   .producer_version = model.producer_version,
                   .opsets = {},
                   .inputs = Signature(model.graph.inputs()),
                   .outputs = Signature(model.graph.outputs()),
                   .functions = {},
                   .ops = CountOps(model),
                   .embedded = {},
                   .external = {}};
  for (const ir::OpsetImport& import : model.opset_imports) {
    facts.opsets.emplace_back(import.domain, import.version);
  }
  for (const ir::Function& function : model.functions) {
    facts.functions.push_back(Qualified(function.domain, function.name));
  }
  for (const ir::Graph* graph : model.AllGraphs()) AddWeights(*graph, facts);
  return facts;
}

std::string ToText(const ModelFacts& facts, const Terminal& terminal) {
  Table table("<<");
  table.AddRow({"ir version", std::to_string(facts.ir_version)});
  const std::string producer = Producer(facts);
  if (!producer.empty()) table.AddRow({"producer", producer});
  table.AddRow({"opsets", Opsets(facts)});
  for (const auto& [name, type] : facts.inputs) {
    table.AddRow({"input", ir::Printable(fmt::format("{} {}", type, name))});
  }
  for (const auto& [name, type] : facts.outputs) {
    table.AddRow({"output", ir::Printable(fmt::format("{} {}", type, name))});
  }
  for (const std::string& name : facts.functions)
    table.AddRow({"function", ir::Printable(name)});
  table.AddRow({"weights", Weights(facts.embedded)});
  if (facts.external.count > 0)
    table.AddRow({"external", Weights(facts.external)});
  Table ops("<>");
  for (const auto& [op, count] : facts.ops)
    ops.AddRow({ir::Printable(op), std::to_string(count)});
  ops.AddRow({"nodes", std::to_string(Total(facts.ops))});
  return table.Render(terminal.width) + "\n" + ops.Render(terminal.width);
}

Json ToJson(const ModelFacts& facts) {
  Json opsets = Json::object();
  for (const auto& [domain, version] : facts.opsets) opsets[domain] = version;
  return {
      {"ir_version", facts.ir_version},
      {"producer",
       {{"name", facts.producer_name}, {"version", facts.producer_version}}},
      {"opsets", std::move(opsets)},
      {"inputs", SignatureToJson(facts.inputs)},
      {"outputs", SignatureToJson(facts.outputs)},
      {"functions", facts.functions},
      {"nodes", Total(facts.ops)},
      {"ops", facts.ops},
      {"initializers",
       {{"embedded", WeightsToJson(facts.embedded)},
        {"external", WeightsToJson(facts.external)}}}};
}

}  // namespace addnorm::tool
