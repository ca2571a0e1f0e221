// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "tool/html/kernel_charts.h"
#include "tool/html/markup.h"
#include "tool/report.h"

namespace addnorm::tool::html {
namespace {

// Per element: add, square, sum up, times the factor, times the weight. What is
// done once a row does not show.
constexpr double kOperations = 5;

const ArmView& BestProbe(const KernelView& result) {
  const auto is_worse = [](const ArmView& a, const ArmView& b) {
    return std::pair(a.is_probe, a.bandwidth) <
           std::pair(b.is_probe, b.bandwidth);
  };
  return *std::max_element(result.arms.begin(), result.arms.end(), is_worse);
}

double Gigabytes(const KernelView& result) {
  return BestProbe(result).bandwidth / 1e9;
}

double Intensity(const KernelView& result, const ArmView& arm) {
  return kOperations * result.elements() / arm.bytes;
}

// In GFLOP/s.
double Speed(const KernelView& result, const ArmView& arm) {
  return arm.seconds > 0 ? kOperations * result.elements() / arm.seconds / 1e9
                         : 0;
}

// The smallest and the largest of a group: more would hide each other.
std::vector<const KernelView*> Ends(const KernelGroup& group) {
  if (!group.has_sizes()) return {group.cases.front()};
  return {group.cases.front(), group.cases.back()};
}

// Of additions and multiplications in registers, in GFLOP/s; nullopt if it was
// not measured for these. Half types compute in float.
std::optional<double> ArithmeticRoof(const KernelView& result,
                                     const Json& arithmetic) {
  const std::string type = result.type == "f64" ? "f64" : "f32";
  for (const Json& row : arithmetic) {
    if (row.at("threads") == result.threads && row.at("type") == type)
      return row.at("operations_per_second").get<double>() / 1e9;
  }
  return std::nullopt;
}

std::string NumbersTable(const KernelGroup& group) {
  TableData table{
      "Roofline: " + group.name,
      "<<>>>",
      {"shape", "arm", "operations per byte", "GFLOP/s", "of the best probe"},
      {}};
  for (const KernelView* result : Ends(group)) {
    ForArms([&](const Series&, std::string_view name) {
      const ArmView& arm = result->arm(name);
      table.rows.push_back({result->shape(), arm.name,
                            fmt::format("{:.3f}", Intensity(*result, arm)),
                            fmt::format("{:.2f}", Speed(*result, arm)),
                            Percent(arm.share_of_best)});
    });
  }
  return Table(table);
}

// Marks of all arms; hollow ones are those of the smaller shape.
std::vector<Series> ArmMarks(const KernelView& result, bool is_hollow) {
  std::vector<Series> marks;
  ForArms([&](Series look, std::string_view name) {
    const ArmView& arm = result.arm(name);
    look.has_line = false;
    if (is_hollow) look.classes += " hollow";
    look.points = {{Intensity(result, arm), Speed(result, arm)}};
    look.tips = {fmt::format("{}, {}: {:.2f} GFLOP/s, {} of the probe",
                             arm.name, result.shape(), Speed(result, arm),
                             Percent(arm.share_of_best))};
    marks.push_back(std::move(look));
  });
  return marks;
}

Series Roof(const char* dashes, std::vector<Point> points) {
  return {.classes = fmt::format("roof {}", dashes),
          .has_marks = false,
          .points = std::move(points),
          .tips = {}};
}

// GB/s as a line, where it is in the box of the axes.
Series BandwidthRoof(double gigabytes, const XyChart& chart,
                     const char* dashes) {
  const double left = std::max(chart.x.low, chart.y.low / gigabytes);
  const double right = std::min(chart.x.high, chart.y.high / gigabytes);
  if (!(left < right)) return Roof(dashes, {});
  return Roof(dashes, {{left, left * gigabytes}, {right, right * gigabytes}});
}

// Below the marks; the caption says what they are.
void AddRoofs(const std::vector<const KernelView*>& ends,
              std::optional<double> arithmetic, XyChart& chart) {
  std::vector<Series> roofs;
  for (const KernelView* result : ends) {
    const bool is_largest = result == ends.back();
    roofs.push_back(BandwidthRoof(Gigabytes(*result), chart,
                                  is_largest ? "solid" : "dashed"));
    chart.text.description +=
        fmt::format("{} roof, {}: {:.1f} GB/s, the best probe ({}). ",
                    is_largest ? "Solid" : "Dashed", result->shape(),
                    Gigabytes(*result), BestProbe(*result).name);
  }
  if (arithmetic) {
    roofs.push_back(Roof(
        "dotted", {{chart.x.low, *arithmetic}, {chart.x.high, *arithmetic}}));
    chart.text.description +=
        fmt::format("Dotted: {:.1f} GFLOP/s of arithmetic.", *arithmetic);
  }
  chart.series.insert(chart.series.begin(), roofs.begin(), roofs.end());
}

std::string RooflineFigure(const KernelGroup& group, const Json& arithmetic,
                           const std::string& id) {
  XyChart chart{.text = {id, "Roofline: " + group.name, ""},
                .x = {},
                .y = {},
                .guides = {},
                .series = {}};
  const std::vector<const KernelView*> ends = Ends(group);
  const auto arithmetic_roof = ArithmeticRoof(*ends.front(), arithmetic);
  for (const KernelView* result : ends) {
    for (Series& marks : ArmMarks(*result, result != ends.back()))
      chart.series.push_back(std::move(marks));
  }
  Range intensities, speeds;
  AddPoints(chart.series, intensities, speeds);
  if (arithmetic_roof) speeds.Add(*arithmetic_roof);
  chart.x = intensities.ToAxis("operations per byte moved", 1.6, 4);
  chart.y = speeds.ToAxis("GFLOP/s", 1.5, 1.3);
  AddRoofs(ends, arithmetic_roof, chart);
  return Figure({group.name, chart.text.description}, Render(chart),
                NumbersTable(group));
}

}  // namespace

std::string RooflineContent(const Kernels& cases, const Json& arithmetic) {
  std::string figures;
  size_t number = 0;
  for (const KernelGroup& group : GroupsOf(cases))
    figures +=
        RooflineFigure(group, arithmetic, fmt::format("roofline-{}", number++));
  return Paragraph(
             "Operations are five an element (add, square, sum up, times the "
             "factor, times the weight), the same in all arms; bytes are the "
             "modelled traffic, lines that stores read first included. Fusing "
             "and better stores move an arm to the right, along a roof. Roofs "
             "are measured: bandwidth by the best probe in the same rounds, "
             "arithmetic by additions and multiplications in registers, not "
             "fused into one. In place can lie above a roof: it writes to "
             "lines that it has read, which no probe does. Full marks: the "
             "largest shape; hollow: the smallest.") +
         Legend(ArmKeys(/*has_line=*/false)) + SideBySide(figures);
}

}  // namespace addnorm::tool::html
