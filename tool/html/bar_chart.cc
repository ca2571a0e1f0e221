// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "tool/html/charts.h"

namespace addnorm::tool::html {
namespace {

using runtime::Interval;

constexpr double kTop = 6;
constexpr double kBar = 13;
constexpr double kBetweenBars = 3;
constexpr double kBetweenGroups = 10;
constexpr double kAxis = 34;
constexpr double kGap = 8;
constexpr double kTickGap = 40;

double GroupHeight(const BarGroup& group) {
  const auto count = static_cast<double>(group.bars.size());
  return count * kBar + (count - 1) * kBetweenBars;
}

double Longest(const BarChart& chart) {
  double longest = 0;
  for (const BarGroup& group : chart.groups) {
    for (const Bar& bar : group.bars) {
      longest = std::max(longest, bar.value);
      if (bar.interval && std::isfinite(bar.interval->high))
        longest =
            std::max(longest, std::min(bar.interval->high, 4 * bar.value));
    }
  }
  return longest > 0 ? longest : 1;
}

// What the widest texts left of the bars and at their ends take.
struct Margins {
  double left = 0, right = 0;
};

Margins MarginsOf(const BarChart& chart) {
  Margins margins;
  for (const BarGroup& group : chart.groups) {
    margins.left = std::max({margins.left, WidthOf(group.label) + kGap,
                             WidthOf(group.note) + kGap});
    for (const Bar& bar : group.bars)
      margins.right = std::max(margins.right, WidthOf(bar.text) + kGap);
  }
  return margins;
}

void DrawBar(Svg& svg, const Bar& bar, const Scale& x, double y) {
  const double end = x.At(bar.value);
  svg.Rect(fmt::format("bar mark {}", bar.classes),
           {x.from, y, end - x.from, kBar}, bar.tip);
  double right = end;
  if (bar.interval) {
    svg.Whisker("whisker", x.At(bar.interval->low), x.At(bar.interval->high),
                y + kBar / 2);
    right = std::max(right, x.At(bar.interval->high));
  }
  svg.Text("value", {right + kGap, y + kBar / 2 + 4}, Anchor::kStart, bar.text);
}

void DrawGroup(Svg& svg, const BarGroup& group, const Scale& x, double y) {
  const double middle = y + GroupHeight(group) / 2;
  svg.Text("label", {0, group.note.empty() ? middle + 4 : middle - 3},
           Anchor::kStart, group.label);
  if (!group.note.empty())
    svg.Text("note", {0, middle + 11}, Anchor::kStart, group.note);
  for (const Bar& bar : group.bars) {
    DrawBar(svg, bar, x, y);
    y += kBar + kBetweenBars;
  }
}

}  // namespace

std::string Render(const BarChart& chart) {
  double height = 0;
  for (const BarGroup& group : chart.groups)
    height += GroupHeight(group) + kBetweenGroups;
  Svg svg(chart.text.id, kChartWidth, kTop + height + kAxis, chart.text.title,
          chart.text.description);
  const Margins margins = MarginsOf(chart);
  const Box plot{margins.left, kTop, kChartWidth - margins.left, height};
  const Scale x{0, Longest(chart), plot.x, plot.right() - margins.right};
  svg.Rect("plot", plot);
  if (chart.band) {
    const double left = x.At(chart.band->low);
    svg.Rect("band", {left, plot.y, x.At(chart.band->high) - left, height});
  }
  for (const double tick : Ticks(x, kTickGap)) {
    svg.Line("grid", {x.At(tick), plot.y}, {x.At(tick), plot.bottom()});
    svg.Text("tick", {x.At(tick), plot.bottom() + 13}, Anchor::kMiddle,
             ShortNumber(tick));
  }
  svg.Text("axis", {plot.x + plot.width / 2, plot.bottom() + 28},
           Anchor::kMiddle, chart.axis);
  double y = plot.y + kBetweenGroups / 2;
  for (const BarGroup& group : chart.groups) {
    DrawGroup(svg, group, x, y);
    y += GroupHeight(group) + kBetweenGroups;
  }
  return std::move(svg).Finish();
}

}  // namespace addnorm::tool::html
