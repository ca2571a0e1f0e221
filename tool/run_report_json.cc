// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON half of run_report.h.
#include <cmath>
#include <string_view>
#include <utility>
#include <variant>

#include "fmt/format.h"
#include "tool/run_report.h"

namespace addnorm::tool {
namespace {

using runtime::NodeTime;
using runtime::OpTime;
using runtime::PlannedStep;
using runtime::PlannedValue;
using runtime::Tensor;
using Json = nlohmann::ordered_json;

// JSON has no NaN and no infinity.
Json JsonNumber(double value) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  return value;
}
Json JsonNumber(int64_t value) { return value; }
Json JsonNumber(uint64_t value) { return value; }

Json JsonNumber(const Number& number) {
  return std::visit([](auto value) -> Json { return JsonNumber(value); },
                    number);
}

void AddJson(Json& object, const Statistics& statistics) {
  if (statistics.min) object["min"] = JsonNumber(*statistics.min);
  if (statistics.max) object["max"] = JsonNumber(*statistics.max);
  if (statistics.mean) object["mean"] = JsonNumber(*statistics.mean);
  object["nan"] = statistics.nan;
  object["infinite"] = statistics.infinite;
  Json first = Json::array();
  for (const Number& value : statistics.first)
    first.push_back(JsonNumber(value));
  object["first"] = std::move(first);
}

std::string_view BufferName(PlannedValue::Buffer buffer) {
  switch (buffer) {
    case PlannedValue::Buffer::kFresh:
      return "fresh";
    case PlannedValue::Buffer::kTakenOver:
      return "taken over";
    case PlannedValue::Buffer::kShared:
      return "shared";
    case PlannedValue::Buffer::kOutside:
      return "outside";
  }
  return "";
}

Json TypeToJson(const std::string& name, const Tensor& tensor) {
  return {{"name", name},
          {"type", ir::DataTypeName(tensor.type())},
          {"shape", tensor.dims()}};
}

Json InputsToJson(const RunResult& result) {
  Json rows = Json::array();
  const auto& inputs = result.model->graph.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& tensor = result.inputs.tensors[i];
    Json row = tensor.is_absent() ? Json{{"name", inputs[i]->name()}}
                                  : TypeToJson(inputs[i]->name(), tensor);
    row["origin"] = result.inputs.origins[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

Json OutputsToJson(const RunResult& result) {
  Json rows = Json::array();
  const auto& outputs = result.model->graph.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    Json row = TypeToJson(outputs[i]->name(), result.outputs[i]);
    AddJson(row, StatisticsOf(result.outputs[i]));
    if (!result.files.empty()) row["file"] = result.files[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

Json DimsToJson(const RunResult& result) {
  Json rows = Json::array();
  for (const ChosenDim& dim : result.inputs.dims) {
    rows.push_back(
        {{"symbol", dim.symbol}, {"value", dim.value}, {"origin", dim.origin}});
  }
  return rows;
}

Json ProfileToJson(const runtime::Profile& profile) {
  Json ops = Json::array();
  for (const OpTime& op : profile.Ops()) {
    ops.push_back({{"domain", op.domain},
                   {"op", op.op_type},
                   {"runs", op.runs},
                   {"seconds", op.seconds}});
  }
  Json nodes = Json::array();
  for (const NodeTime& time : profile.Nodes()) {
    nodes.push_back({{"node", time.node->Describe()},
                     {"name", time.node->name},
                     {"domain", time.node->domain()},
                     {"op", time.node->op_type()},
                     {"runs", time.runs},
                     {"seconds", time.seconds}});
  }
  return {{"seconds", profile.seconds()},
          {"ops", std::move(ops)},
          {"nodes", std::move(nodes)}};
}

Json StepToJson(const PlannedStep& step) {
  Json outputs = Json::array();
  for (const PlannedValue& output : step.outputs) {
    Json row{{"name", output.value == nullptr ? "" : output.value->name()},
             {"type", ir::DataTypeName(output.type)},
             {"shape", output.dims},
             {"bytes", output.bytes},
             {"buffer", BufferName(output.buffer)}};
    if (output.from != nullptr) row["from"] = output.from->name();
    outputs.push_back(std::move(row));
  }
  Json dying = Json::array();
  for (const ir::Value* value : step.dying) dying.push_back(value->name());
  return {{"node", step.node->Describe()}, {"outputs", std::move(outputs)},
          {"dies", std::move(dying)},      {"inside_bytes", step.inside},
          {"peak_bytes", step.peak},       {"after_bytes", step.after}};
}

Json PlanToJson(const RunResult& result) {
  const runtime::MemoryPeaks& peaks = result.plan->peaks();
  Json steps = Json::array();
  for (const PlannedStep& step : result.plan->steps())
    steps.push_back(StepToJson(step));
  return {{"naive_peak_bytes", peaks.kept},
          {"lifetime_peak_bytes", peaks.lifetime},
          {"planned_peak_bytes", peaks.planned},
          {"measured_peak_bytes", peaks.measured},
          {"weight_bytes", result.weight_bytes},
          {"steps", std::move(steps)}};
}

}  // namespace

Json ToJson(const RunResult& result) {
  Json json{{"model", result.name},
            {"seed", result.seed},
            {"threads", result.threads},
            {"inputs", InputsToJson(result)},
            {"dims", DimsToJson(result)},
            {"outputs", OutputsToJson(result)},
            {"seconds", result.seconds},
            {"peak_bytes", result.peak_bytes},
            {"weight_bytes", result.weight_bytes}};
  Json declarations = Json::array();
  for (const FalseDeclaration& one : result.false_declarations) {
    declarations.push_back({{"value", one.value->name()},
                            {"node", one.value->producer()->Describe()},
                            {"declared", one.declared},
                            {"computed", one.computed}});
  }
  json["false_declarations"] = std::move(declarations);
  if (result.profile != nullptr)
    json["profile"] = ProfileToJson(*result.profile);
  if (result.plan != nullptr) json["plan"] = PlanToJson(result);
  return json;
}

}  // namespace addnorm::tool
