// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/run_report.h"

#include <algorithm>
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

constexpr size_t kNodesInText = 20;

// ---- numbers

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

// ---- names

std::string NameOf(const ir::Value* value) {
  return value == nullptr ? "" : ir::Printable(value->name());
}

std::string OpName(const OpTime& op) {
  return ir::Printable(op.domain.empty() ? op.op_type
                                         : op.domain + "." + op.op_type);
}

// ---- text

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

}  // namespace

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

}  // namespace addnorm::tool
