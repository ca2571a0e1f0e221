// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Charts over sizes and intensities: the cliffs at the caches' ends, and the
// roofline.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
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

// Per element: add, square, sum up, times the factor, times the weight. What is
// done once a row does not show.
constexpr double kOperations = 5;

// a, b, the sum and y.
double WorkingSet(const KernelView& result) { return 4 * result.tensor_bytes; }

double Nanoseconds(const KernelView& result, const ArmView& arm) {
  return 1e9 * arm.seconds / result.elements();
}

// Of values that are to be on an axis.
class Range {
 public:
  void Add(double value) {
    if (!(value > 0) || !std::isfinite(value)) return;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  // Widened by factors; some range if there was no value.
  Axis ToAxis(std::string name, double below, double above,
              Unit unit = Unit::kNumber) const {
    if (low_ > high_) return {std::move(name), 1, 10, unit};
    return {std::move(name), low_ / below, high_ * above, unit};
  }

 private:
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = 0;
};

template <typename F>
void ForArms(F f) {
  for (const bool is_fused : {false, true})
    for (const StoresRow& stores : kStores)
      f(LookOf(stores, is_fused), is_fused ? stores.fused : stores.unfused);
}

// ---- sizes

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
    guides.push_back(
        {fmt::format("{} {}", level.name, BinaryBytes(bytes)), bytes});
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
    std::vector<std::string> row = {result->shape(),
                                    BinaryBytes(WorkingSet(*result))};
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
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) {
      sizes.Add(point.x);
      times.Add(point.y);
    }
  }
  chart.x = sizes.ToAxis("bytes of the four tensors", 1, 1, Unit::kBytes);
  chart.y = times.ToAxis("ns per element", 1.05, 1.05);
  const KernelView &first = *group.cases.front(), &last = *group.cases.back();
  chart.text.description = fmt::format(
      "From {} to {}, an element takes {:.3g} to {:.3g} ns unfused and {:.3g} "
      "to {:.3g} ns fused, both with plain stores.",
      BinaryBytes(WorkingSet(first)), BinaryBytes(WorkingSet(last)),
      Nanoseconds(first, first.arm("unfused")),
      Nanoseconds(last, last.arm("unfused")),
      Nanoseconds(first, first.arm("fused")),
      Nanoseconds(last, last.arm("fused")));
  return Figure({group.name, chart.text.description}, Render(chart),
                SizesTable(group));
}

bool HasSizes(const KernelGroup& group) {
  return group.cases.front()->tensor_bytes != group.cases.back()->tensor_bytes;
}

// ---- roofline

double BestBandwidth(const KernelView& result) {
  double best = 0;
  for (const ArmView& arm : result.arms) {
    if (arm.is_probe) best = std::max(best, arm.bandwidth);
  }
  return best;
}

std::string_view BestProbe(const KernelView& result) {
  const double best = BestBandwidth(result);
  for (const ArmView& arm : result.arms) {
    if (arm.is_probe && arm.bandwidth == best) return arm.name;
  }
  return "";
}

double Intensity(const KernelView& result, const ArmView& arm) {
  return kOperations * result.elements() / arm.bytes;
}

double Speed(const KernelView& result, const ArmView& arm) {
  return arm.seconds > 0 ? kOperations * result.elements() / arm.seconds / 1e9
                         : 0;
}

// The smallest and the largest of a group: more would hide each other.
std::vector<const KernelView*> Ends(const KernelGroup& group) {
  if (!HasSizes(group)) return {group.cases.front()};
  return {group.cases.front(), group.cases.back()};
}

// Of additions and multiplications in registers, in GFLOP/s; nullopt if it was
// not measured for these.
std::optional<double> ArithmeticRoof(const KernelView& result,
                                     const Json& arithmetic) {
  const std::string type = result.type == "f64" ? "f64" : "f32";
  for (const Json& row : arithmetic) {
    if (row.at("threads") == result.threads && row.at("type") == type)
      return row.at("operations_per_second").get<double>() / 1e9;
  }
  return std::nullopt;
}

// GB/s as a line in the box of the axes.
Series BandwidthRoof(double gigabytes, const XyChart& chart,
                     const char* classes) {
  const double left = std::max(chart.x.low, chart.y.low / gigabytes);
  const double right = std::min(chart.x.high, chart.y.high / gigabytes);
  Series roof{.classes = classes, .has_marks = false, .points = {}, .tips = {}};
  if (left < right)
    roof.points = {{left, left * gigabytes}, {right, right * gigabytes}};
  return roof;
}

std::string RooflineTable(const KernelGroup& group) {
  TableData table{
      "Roofline: " + group.name,
      "<<>>>",
      {"shape", "arm", "operations per byte", "GFLOP/s", "of the best probe"},
      {}};
  for (const KernelView* result : Ends(group))
    ForArms([&](const Series&, std::string_view name) {
      const ArmView& arm = result->arm(name);
      table.rows.push_back({result->shape(), arm.name,
                            fmt::format("{:.3f}", Intensity(*result, arm)),
                            fmt::format("{:.2f}", Speed(*result, arm)),
                            fmt::format("{:.0f} %", 100 * arm.share_of_best)});
    });
  return Table(table);
}

std::string RoofText(const KernelView& result, const char* line) {
  return fmt::format("{} roof, {}: {:.1f} GB/s, the best probe ({}). ", line,
                     result.shape(), BestBandwidth(result) / 1e9,
                     BestProbe(result));
}

std::string RooflineFigure(const KernelGroup& group, const Json& arithmetic,
                           const std::string& id) {
  XyChart chart{.text = {id, "Roofline: " + group.name, ""},
                .x = {},
                .y = {},
                .guides = {},
                .series = {}};
  const std::vector<const KernelView*> ends = Ends(group);
  const std::optional<double> arithmetic_roof =
      ArithmeticRoof(*ends.front(), arithmetic);
  Range intensities, speeds;
  for (const KernelView* result : ends) {
    ForArms([&](Series look, std::string_view name) {
      const ArmView& arm = result->arm(name);
      look.has_line = false;
      if (result != ends.back()) look.classes += " hollow";
      look.points = {{Intensity(*result, arm), Speed(*result, arm)}};
      look.tips = {fmt::format("{}, {}: {:.2f} GFLOP/s, {:.0f} % of the probe",
                               arm.name, result->shape(), Speed(*result, arm),
                               100 * arm.share_of_best)};
      intensities.Add(look.points[0].x);
      speeds.Add(look.points[0].y);
      chart.series.push_back(std::move(look));
    });
  }
  if (arithmetic_roof) speeds.Add(*arithmetic_roof);
  chart.x = intensities.ToAxis("operations per byte moved", 1.6, 4);
  chart.y = speeds.ToAxis("GFLOP/s", 1.5, 1.3);
  std::vector<Series> roofs;
  std::string caption;
  for (const KernelView* result : ends) {
    const bool is_largest = result == ends.back();
    roofs.push_back(BandwidthRoof(BestBandwidth(*result) / 1e9, chart,
                                  is_largest ? "roof solid" : "roof dashed"));
    caption += RoofText(*result, is_largest ? "Solid" : "Dashed");
  }
  if (arithmetic_roof) {
    roofs.push_back({.classes = "roof dotted",
                     .has_marks = false,
                     .points = {{chart.x.low, *arithmetic_roof},
                                {chart.x.high, *arithmetic_roof}},
                     .tips = {}});
    caption +=
        fmt::format("Dotted: {:.1f} GFLOP/s of arithmetic.", *arithmetic_roof);
  }
  chart.series.insert(chart.series.begin(), roofs.begin(), roofs.end());
  chart.text.description = caption;
  return Figure({group.name, caption}, Render(chart), RooflineTable(group));
}

}  // namespace

std::string SizesContent(const Kernels& cases, const Json& machine) {
  std::string figures;
  size_t number = 0;
  for (const KernelGroup& group : GroupsOf(cases)) {
    if (!HasSizes(group)) continue;
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
