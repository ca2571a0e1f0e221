// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "tool/html/charts.h"
#include "tool/report.h"

namespace addnorm::tool::html {
namespace {

// Two lines of guides' labels above, ticks and names left and below.
constexpr Box kPlot{42, 30, kChartWidth - 42 - 6, 190};
constexpr double kHeight = kPlot.y + kPlot.height + 36;
// So that no mark hangs over the edge.
constexpr double kInside = 6;
constexpr double kGuideLine = 13;
// Between ticks with their texts.
constexpr double kColumnGap = 60, kLineGap = 17;

Scale ScaleOf(const Axis& axis, double from, double to) {
  return {axis.low, axis.high, from, to, /*is_logarithmic=*/true};
}

std::string TickText(const Axis& axis, double value) {
  return axis.unit == Unit::kBytes ? FormatBytes(static_cast<uint64_t>(value))
                                   : ShortNumber(value);
}

void DrawAxes(Svg& svg, const XyChart& chart, const Scale& x, const Scale& y) {
  for (const double tick : Ticks(x, kColumnGap)) {
    const std::string text = TickText(chart.x, tick);
    svg.Line("grid", {x.At(tick), kPlot.y}, {x.At(tick), kPlot.bottom()});
    svg.Text("tick",
             {std::min(x.At(tick), kChartWidth - WidthOf(text) / 2),
              kPlot.bottom() + 14},
             Anchor::kMiddle, text);
  }
  for (const double tick : Ticks(y, kLineGap)) {
    svg.Line("grid", {kPlot.x, y.At(tick)}, {kPlot.right(), y.At(tick)});
    svg.Text("tick", {kPlot.x - 5, y.At(tick) + 4}, Anchor::kEnd,
             TickText(chart.y, tick));
  }
  svg.Text("axis", {kPlot.x + kPlot.width / 2, kPlot.bottom() + 30},
           Anchor::kMiddle, chart.x.name);
  svg.Text("axis", {0, 11}, Anchor::kStart, chart.y.name);
}

// Labels of neighbours stand in two lines, where the axis' name leaves room.
void DrawGuides(Svg& svg, const XyChart& chart, const Scale& x) {
  double first_free[] = {WidthOf(chart.y.name) + kCharacter, 0};
  for (const Guide& guide : chart.guides) {
    if (!x.Has(guide.x)) continue;
    const double at = x.At(guide.x);
    svg.Line("guide", {at, kPlot.y - 3}, {at, kPlot.bottom()});
    const double width = WidthOf(guide.label);
    const double left = std::clamp(at - width / 2, 0.0, kChartWidth - width);
    for (const size_t line : {1, 0}) {
      if (left < first_free[line]) continue;
      svg.Text("note", {left, kPlot.y - 6 - (line == 0 ? kGuideLine : 0)},
               Anchor::kStart, guide.label);
      first_free[line] = left + width + kCharacter;
      break;
    }
  }
}

void DrawSeries(Svg& svg, const Series& series, const Scale& x,
                const Scale& y) {
  std::vector<Point> places;
  for (const Point& point : series.points)
    places.push_back({x.At(point.x), y.At(point.y)});
  if (series.has_line && places.size() > 1)
    svg.Polyline(fmt::format("line {}", series.classes), places);
  if (!series.has_marks) return;
  for (size_t i = 0; i < places.size(); ++i) {
    svg.Mark(series.classes, series.shape, places[i],
             i < series.tips.size() ? series.tips[i] : std::string());
  }
}

}  // namespace

void Range::Add(double value) {
  if (!(value > 0) || !std::isfinite(value)) return;
  low_ = low_ > 0 ? std::min(low_, value) : value;
  high_ = std::max(high_, value);
}

Axis Range::ToAxis(std::string name, double below, double above,
                   Unit unit) const {
  if (!(low_ > 0)) return {std::move(name), 1, 10, unit};
  return {std::move(name), low_ / below, high_ * above, unit};
}

void AddPoints(const std::vector<Series>& series, Range& x, Range& y) {
  for (const Series& some : series) {
    for (const Point& point : some.points) {
      x.Add(point.x);
      y.Add(point.y);
    }
  }
}

std::string Render(const XyChart& chart) {
  Svg svg(chart.text.id, kChartWidth, kHeight, chart.text.title,
          chart.text.description);
  const Scale x = ScaleOf(chart.x, kPlot.x + kInside, kPlot.right() - kInside);
  const Scale y = ScaleOf(chart.y, kPlot.bottom() - kInside, kPlot.y + kInside);
  svg.Rect("plot", kPlot);
  DrawAxes(svg, chart, x, y);
  DrawGuides(svg, chart, x);
  for (const Series& series : chart.series) DrawSeries(svg, series, x, y);
  return std::move(svg).Finish();
}

std::string LegendKey(const Series& series) {
  constexpr Point kMiddle{14, 7};
  std::string shape = series.has_line ? fmt::format(
                                            "<line class=\"line {}\" x1=\"1\" "
                                            "y1=\"7\" x2=\"27\" y2=\"7\"/>",
                                            series.classes)
                                      : "";
  if (series.has_marks)
    shape += MarkElement(series.classes, series.shape, kMiddle);
  return fmt::format(
      "<svg class=\"key\" viewBox=\"0 0 28 14\" aria-hidden=\"true\">{}</svg>",
      shape);
}

}  // namespace addnorm::tool::html
