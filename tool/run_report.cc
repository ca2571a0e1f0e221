// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/run_report.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>
#include <variant>

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
constexpr size_t kStepsInText = 10;

// ---- numbers

std::string NumberText(double value) { return fmt::format("{:.6g}", value); }
std::string NumberText(int64_t value) { return fmt::format("{}", value); }
std::string NumberText(uint64_t value) { return fmt::format("{}", value); }
std::string NumberText(const Number& number) {
  return std::visit([](auto value) { return NumberText(value); }, number);
}

template <typename T>
std::string NumberText(const std::optional<T>& number) {
  return number ? NumberText(*number) : "-";
}

std::string FirstValues(const Statistics& statistics) {
  std::string text;
  for (const Number& value : statistics.first)
    text += (text.empty() ? "" : ", ") + NumberText(value);
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
      row.insert(row.end(),
                 {NumberText(numbers.min), NumberText(numbers.max),
                  NumberText(numbers.mean), fmt::format("{}", numbers.nan),
                  FirstValues(numbers)});
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

std::string ProfileText(const runtime::Profile& profile, bool is_verbose,
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
  const size_t shown = is_verbose ? times.size() : kNodesInText;
  for (size_t i = 0; i < std::min(times.size(), shown); ++i) {
    nodes.AddRow({ir::Printable(times[i].node->Describe()),
                  fmt::format("{}", times[i].runs),
                  NodeSeconds(times[i].seconds), Share(times[i].seconds, all)});
  }
  std::string text = terminal.Paint(Style::kStrong, "profile") + "\n" +
                     ops.Render(terminal.width) + "\n" +
                     nodes.Render(terminal.width);
  if (times.size() > shown) {
    text += fmt::format("… and {} more (-v and --json have all)\n",
                        times.size() - shown);
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

std::string PeaksText(const RunResult& result, size_t width) {
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
  return table.Render(width);
}

// Places of the steps to show: all in their order, or those that hold most.
std::vector<size_t> ShownSteps(const RunResult& result) {
  const std::vector<PlannedStep>& steps = result.plan->steps();
  std::vector<size_t> places(steps.size());
  std::iota(places.begin(), places.end(), 0);
  if (result.is_verbose) return places;
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
    return steps[a].peak > steps[b].peak;
  });
  places.resize(std::min(places.size(), kStepsInText));
  return places;
}

std::string PlanText(const RunResult& result, const Terminal& terminal) {
  const std::vector<PlannedStep>& steps = result.plan->steps();
  const std::vector<size_t> shown = ShownSteps(result);
  std::string text = terminal.Paint(Style::kStrong, "memory plan") + "\n" +
                     PeaksText(result, terminal.width);
  if (!steps.empty()) {
    text += result.is_verbose ? "\nsteps in their order\n"
                              : "\nsteps, those that hold most first\n";
  }
  for (const size_t place : shown)
    text += StepText(steps[place], place + 1, terminal.width);
  if (shown.size() < steps.size()) {
    text += fmt::format("… and {} more (-v and --json have all)\n",
                        steps.size() - shown.size());
  }
  return text;
}

}  // namespace

std::string ToText(const RunResult& result, const Terminal& terminal) {
  std::string text;
  if (!result.inputs.tensors.empty())
    text += InputsText(result, terminal) + "\n";
  text += OutputsText(result, terminal) + "\n";
  if (result.profile != nullptr)
    text += ProfileText(*result.profile, result.is_verbose, terminal) + "\n";
  if (result.plan != nullptr) text += PlanText(result, terminal) + "\n";
  return text +
         fmt::format(
             "time: {} on {}; memory: {} of values at most, {} "
             "of weights\n",
             FormatSeconds(result.seconds), Plural(result.threads, "thread"),
             FormatBytes(result.peak_bytes), FormatBytes(result.weight_bytes));
}

}  // namespace addnorm::tool
