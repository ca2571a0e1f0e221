// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/run_report.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "tool/model_facts.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

using runtime::NodeTime;
using runtime::OpTime;
using runtime::PlannedStep;
using runtime::PlannedValue;
using runtime::Tensor;
using Json = nlohmann::ordered_json;

constexpr size_t kFirstValues = 4;
constexpr size_t kNodesInText = 20;

// ---- numbers of a tensor
// ---------------------------------------------------------

template <typename T>
void Gather(const Tensor& tensor, Statistics& out) {
  using Computed = runtime::ComputeType<T>;
  out.is_integer = std::is_integral_v<Computed>;
  double least = INFINITY, most = -INFINITY, sum = 0;
  for (const T element : tensor.elements<T>()) {
    const auto value = static_cast<double>(runtime::Widen(element));
    if (out.first.size() < kFirstValues) out.first.push_back(value);
    if (std::isnan(value)) {
      ++out.nan;
      continue;
    }
    out.infinite += std::isinf(value) ? 1 : 0;
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
  }
  const int64_t numbers = out.count - out.nan;
  if (numbers == 0) return;
  out.min = least;
  out.max = most;
  out.mean = sum / static_cast<double>(numbers);
}

template <typename... Ts>
void GatherAny(const Tensor& tensor, Statistics& out) {
  (void)((tensor.type() == runtime::kTypeOf<Ts> &&
          (Gather<Ts>(tensor, out), true)) ||
         ...);
}

std::string Number(double value, bool is_integer) {
  return is_integer ? fmt::format("{:.0f}", value)
                    : fmt::format("{:.6g}", value);
}

std::string Number(std::optional<double> value, bool is_integer) {
  return value ? Number(*value, is_integer) : "-";
}

std::string FirstValues(const Statistics& statistics) {
  std::string text;
  for (const double value : statistics.first)
    text += (text.empty() ? "" : ", ") + Number(value, statistics.is_integer);
  if (statistics.count > static_cast<int64_t>(statistics.first.size()) &&
      !text.empty())
    text += ", …";
  return text;
}

// JSON has no NaN and no infinity.
Json JsonNumber(double value, bool is_integer) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  if (is_integer && std::abs(value) < 0x1p53)
    return static_cast<int64_t>(value);
  return value;
}

void AddJson(Json& object, const Statistics& statistics) {
  const std::pair<const char*, std::optional<double>> numbers[] = {
      {"min", statistics.min}, {"max", statistics.max}};
  for (const auto& [key, value] : numbers) {
    if (value) object[key] = JsonNumber(*value, statistics.is_integer);
  }
  if (statistics.mean)
    object["mean"] = JsonNumber(*statistics.mean, /*is_integer=*/false);
  object["nan"] = statistics.nan;
  object["infinite"] = statistics.infinite;
  Json first = Json::array();
  for (const double value : statistics.first)
    first.push_back(JsonNumber(value, statistics.is_integer));
  object["first"] = std::move(first);
}

// ---- names
// -------------------------------------------------------------------------

std::string NameOf(const ir::Value* value) {
  return value == nullptr ? "" : ir::Printable(value->name());
}

std::string OpName(const OpTime& op) {
  return ir::Printable(op.domain.empty() ? op.op_type
                                         : op.domain + "." + op.op_type);
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

// ---- text
// --------------------------------------------------------------------------

std::string InputsText(const RunResult& result, const Terminal& terminal) {
  Table table("<<<");
  const auto& inputs = result.model->graph.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& tensor = result.inputs.tensors[i];
    table.AddRow(
        {NameOf(inputs[i]),
         tensor.is_absent() ? ir::ToString(inputs[i]->type) : Describe(tensor),
         ir::Printable(result.inputs.origins[i])});
  }
  std::string text = terminal.Paint(Style::kStrong, "inputs") + "\n" +
                     table.Render(terminal.width);
  std::string dims;
  for (const ChosenDim& dim : result.inputs.dims) {
    dims += fmt::format("{}{}={} ({})", dims.empty() ? "" : ", ",
                        ir::Printable(dim.symbol), dim.value, dim.origin);
  }
  if (!dims.empty()) text += Paragraph("dims: ", dims, terminal.width);
  return text;
}

std::string OutputsText(const RunResult& result, const Terminal& terminal) {
  const bool is_written = !result.files.empty();
  Table table(is_written ? "<<<" : "<<>>>><");
  if (!is_written)
    table.AddRow({"", "", "min", "max", "mean", "nan", "first values"});
  const auto& outputs = result.model->graph.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& tensor = result.outputs[i];
    std::vector<std::string> row = {NameOf(outputs[i]), Describe(tensor)};
    if (is_written) {
      row.push_back("-> " + ir::Printable(result.files[i]));
    } else {
      const Statistics numbers = StatisticsOf(tensor);
      row.insert(
          row.end(),
          {Number(numbers.min, numbers.is_integer),
           Number(numbers.max, numbers.is_integer), Number(numbers.mean, false),
           fmt::format("{}", numbers.nan), FirstValues(numbers)});
    }
    table.AddRow(std::move(row));
  }
  return terminal.Paint(Style::kStrong, "outputs") + "\n" +
         table.Render(terminal.width);
}

std::string Share(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "-";
}

std::string NodeSeconds(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} µs", seconds * 1e6)
                        : FormatSeconds(seconds);
}

std::string ProfileText(const runtime::Profile& profile,
                        const Terminal& terminal) {
  const double all = profile.seconds();
  Table ops("<>>>");
  ops.AddRow({"operator", "runs", "time", "share"});
  for (const OpTime& op : profile.Ops()) {
    ops.AddRow({OpName(op), fmt::format("{}", op.runs), NodeSeconds(op.seconds),
                Share(op.seconds, all)});
  }
  Table nodes("<>>>");
  nodes.AddRow({"node", "runs", "time", "share"});
  const std::vector<NodeTime> times = profile.Nodes();
  for (size_t i = 0; i < std::min(times.size(), kNodesInText); ++i) {
    nodes.AddRow({ir::Printable(times[i].node->Describe()),
                  fmt::format("{}", times[i].runs),
                  NodeSeconds(times[i].seconds), Share(times[i].seconds, all)});
  }
  std::string text = terminal.Paint(Style::kStrong, "profile") + "\n" +
                     ops.Render(terminal.width) + "\n" +
                     nodes.Render(terminal.width);
  if (times.size() > kNodesInText) {
    text += fmt::format("… and {} more (--json has all)\n",
                        times.size() - kNodesInText);
  }
  return text;
}

// "sum: residual's buffer"
std::string BufferText(const PlannedValue& output) {
  const std::string name =
      output.value == nullptr ? "(unnamed)" : NameOf(output.value);
  const std::string size = FormatBytes(output.bytes);
  switch (output.buffer) {
    case PlannedValue::Buffer::kFresh:
      return fmt::format("{} ({})", name, size);
    case PlannedValue::Buffer::kTakenOver:
      return fmt::format("{} takes over {} ({})", name, NameOf(output.from),
                         size);
    default:
      return output.from == nullptr
                 ? fmt::format("{} is a constant ({})", name, size)
                 : fmt::format("{} shares {} ({})", name, NameOf(output.from),
                               size);
  }
}

std::string StepText(const PlannedStep& step, size_t number, size_t width) {
  std::string text =
      fmt::format("{:>5}  {}\n", number, ir::Printable(step.node->Describe()));
  const std::string indent(7, ' ');
  for (const PlannedValue& output : step.outputs)
    text += Paragraph(indent, BufferText(output), width);
  std::string dying;
  for (const ir::Value* value : step.dying)
    dying += (dying.empty() ? "dies: " : ", ") + NameOf(value);
  if (!dying.empty()) text += Paragraph(indent, dying, width);
  std::string held = fmt::format("holds {}, then {}", FormatBytes(step.peak),
                                 FormatBytes(step.after));
  if (step.inside > 0)
    held += fmt::format("; {} inside", FormatBytes(step.inside));
  return text + indent + held + "\n";
}

std::string PlanText(const RunResult& result, const Terminal& terminal) {
  std::string text = terminal.Paint(Style::kStrong, "memory plan") + "\n";
  for (size_t i = 0; i < result.plan->steps().size(); ++i)
    text += StepText(result.plan->steps()[i], i + 1, terminal.width);
  const runtime::MemoryPeaks& peaks = result.plan->peaks();
  Table table("<><");
  const auto row = [&](const char* name, size_t bytes, const char* what) {
    table.AddRow({name, FormatBytes(bytes), what});
  };
  row("naive peak", peaks.kept, "every value kept until the end");
  row("lifetimes", peaks.lifetime, "freed at the last use");
  row("planned peak", peaks.planned, "and buffers taken over");
  row("measured peak", peaks.measured, "");
  row("weights", result.weight_bytes, "apart");
  return text + table.Render(terminal.width);
}

// ---- JSON
// --------------------------------------------------------------------------

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

Statistics StatisticsOf(const Tensor& tensor) {
  using namespace runtime;  // NOLINT: the names of element types
  Statistics statistics;
  statistics.count = tensor.count();
  GatherAny<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t,
            uint8_t, uint16_t, uint32_t, uint64_t, bool>(tensor, statistics);
  return statistics;
}

std::string ToText(const RunResult& result, const Terminal& terminal) {
  std::string text;
  if (!result.inputs.tensors.empty())
    text += InputsText(result, terminal) + "\n";
  text += OutputsText(result, terminal) + "\n";
  if (result.profile != nullptr)
    text += ProfileText(*result.profile, terminal) + "\n";
  if (result.plan != nullptr) text += PlanText(result, terminal) + "\n";
  return text +
         fmt::format(
             "time: {} on {}; memory: {} of values at most, {} "
             "of weights\n",
             FormatSeconds(result.seconds), Plural(result.threads, "thread"),
             FormatBytes(result.peak_bytes), FormatBytes(result.weight_bytes));
}

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
  if (result.profile != nullptr)
    json["profile"] = ProfileToJson(*result.profile);
  if (result.plan != nullptr) json["plan"] = PlanToJson(result);
  return json;
}

}  // namespace addnorm::tool
