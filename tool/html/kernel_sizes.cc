// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "fmt/format.h"
#include "tool/html/kernel_charts.h"
#include "tool/html/markup.h"
#include "tool/report.h"

namespace addnorm::tool::html {
namespace {

constexpr const char* kSweep =
    "onnx-addnorm bench --kernel --shapes cliff --types f32 --caches warm "
    "--html FILE";

// a, b, the sum and y.
double WorkingSet(const KernelView& result) { return 4 * result.tensor_bytes; }
std::string SizeText(const KernelView& result) {
  return FormatBytes(static_cast<uint64_t>(WorkingSet(result)));
}

double Nanoseconds(const KernelView& result, const ArmView& arm) {
  return 1e9 * arm.seconds / result.elements();
}

Series OverSizes(const KernelGroup& group, Series look, std::string_view arm) {
  for (const KernelView* result : group.cases) {
    const double value = Nanoseconds(*result, result->arm(arm));
    look.points.push_back({WorkingSet(*result), value});
    look.tips.push_back(fmt::format("{}, {}: {:.3g} ns an element, {:.1f} GB/s",
                                    arm, result->shape(), value,
                                    result->arm(arm).bandwidth / 1e9));
  }
  return look;
}

Series ProbeLook() {
  return {.classes = "probe solid",
          .shape = Shape::kDiamond,
          .points = {},
          .tips = {}};
}

std::vector<Guide> CacheGuides(const Json& machine) {
  struct Level {
    const char* name;
    const char* key;
  };
  constexpr Level kLevels[] = {{"L1", "l1_bytes"},
                               {"L2", "l2_bytes"},
                               {"LLC", "last_level_cache_bytes"}};
  std::vector<Guide> guides;
  double before = 0;
  for (const Level& level : kLevels) {
    const double bytes = machine.at(level.key).get<double>();
    if (bytes <= before) continue;
    guides.push_back({fmt::format("{} {}", level.name,
                                  FormatBytes(static_cast<uint64_t>(bytes))),
                      bytes});
    before = bytes;
  }
  return guides;
}

std::string SizesTable(const KernelGroup& group) {
  TableData table{"Nanoseconds an element: " + group.name,
                  "<>",
                  {"shape", "four tensors"},
                  {}};
  ForArms([&](const Series&, std::string_view arm) {
    table.alignment += '>';
    table.headings.emplace_back(arm);
  });
  for (const KernelView* result : group.cases) {
    std::vector<std::string> row = {result->shape(), SizeText(*result)};
    ForArms([&](const Series&, std::string_view arm) {
      row.push_back(
          fmt::format("{:.3g}", Nanoseconds(*result, result->arm(arm))));
    });
    table.rows.push_back(std::move(row));
  }
  return Table(table);
}

std::string SizesFigure(const KernelGroup& group, const Json& machine,
                        const std::string& id) {
  XyChart chart{
      .text = {id, "Time of an element over sizes: " + group.name, ""},
      .x = {},
      .y = {},
      .guides = CacheGuides(machine),
      .series = {OverSizes(group, ProbeLook(), "copy")}};
  ForArms([&](Series look, std::string_view arm) {
    chart.series.push_back(OverSizes(group, std::move(look), arm));
  });
  Range sizes, times;
  AddPoints(chart.series, sizes, times);
  chart.x = sizes.ToAxis("bytes of the four tensors", 1, 1, Unit::kBytes);
  chart.y = times.ToAxis("ns per element", 1.05, 1.05);
  const KernelView &first = *group.cases.front(), &last = *group.cases.back();
  chart.text.description = fmt::format(
      "From {} to {}, an element takes {:.3g} to {:.3g} ns unfused and {:.3g} "
      "to {:.3g} ns fused, both with plain stores.",
      SizeText(first), SizeText(last), Nanoseconds(first, first.arm("unfused")),
      Nanoseconds(last, last.arm("unfused")),
      Nanoseconds(first, first.arm("fused")),
      Nanoseconds(last, last.arm("fused")));
  return Figure({group.name, chart.text.description}, Render(chart),
                SizesTable(group));
}

}  // namespace

std::string SizesContent(const Kernels& cases, const Json& machine) {
  std::string figures;
  size_t number = 0;
  for (const KernelGroup& group : GroupsOf(cases)) {
    if (!group.has_sizes()) continue;
    figures += SizesFigure(group, machine, fmt::format("sizes-{}", number++));
  }
  if (figures.empty())
    return Paragraph(
               "One size alone shows no cliff. A sweep from the first-level "
               "cache to beyond the last:") +
           CommandLine(kSweep);
  std::vector<LegendEntry> legend = ArmKeys(/*has_line=*/true);
  legend.push_back({LegendKey(ProbeLook()), "copy (probe)"});
  return Paragraph(
             "Time of an element against the bytes of the four tensors a, b, "
             "sum and y; in place touches half of them. Vertical lines are "
             "this machine’s caches: where a set outgrows one, arms slow down "
             "to what the next one gives. Both axes are logarithmic. A sweep "
             "of all sizes:") +
         CommandLine(kSweep) + Legend(legend) + SideBySide(figures);
}

}  // namespace addnorm::tool::html
