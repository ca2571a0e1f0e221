// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "tool/bench_result.h"
#include "tool/html/charts.h"
#include "tool/report.h"

namespace addnorm::tool::html {
namespace {

using runtime::Interval;
using runtime::Verdict;

constexpr double kTop = 8;
constexpr double kRow = 20;
constexpr double kAxis = 34;
constexpr double kGap = 8;
constexpr double kWords = 96;  // "not measurable" at the right
constexpr double kMostLabel = 150;
constexpr double kTickGap = 30;
// Beyond these an axis would show nothing but itself.
constexpr double kLowest = 1.0 / 8, kHighest = 8;

struct Look {
  Verdict verdict;
  const char* classes;
  Shape shape;
};
// Shapes differ too: colours alone are not for everybody.
constexpr Look kLooks[] = {
    {Verdict::kFaster, "fused", Shape::kCircle},
    {Verdict::kSlower, "unfused", Shape::kDiamond},
    {Verdict::kNoDifference, "wash", Shape::kSquare},
    {Verdict::kNothingMeasurable, "wash", Shape::kSquare},
    {Verdict::kOfNoUse, "wash", Shape::kSquare},
    {Verdict::kTooFewRounds, "wash", Shape::kSquare},
};

const Look& LookOf(Verdict verdict) {
  return *std::find_if(
      std::begin(kLooks), std::end(kLooks),
      [&](const Look& look) { return look.verdict == verdict; });
}

std::string Tip(const RatioRow& row) {
  const ArmComparison& comparison = row.comparison;
  const std::string start =
      row.label + ": " + RatioText(comparison.estimate) + ", ";
  if (comparison.verdict == Verdict::kTooFewRounds)
    return start + InBrief(comparison);
  return fmt::format("{}noise {:.1f} %, {}", start, 100 * comparison.noise,
                     InBrief(comparison));
}

double LabelWidth(const RatioChart& chart) {
  size_t columns = 0;
  for (const RatioRow& row : chart.rows)
    columns = std::max(columns, Columns(row.label));
  return std::min(kMostLabel, static_cast<double>(columns) * kCharacter);
}

// Round ones to both sides of 1, as close as labels can stand.
std::vector<double> RatioTicks(const Scale& x) {
  std::vector<std::vector<double>> choices;
  for (const double step : {0.05, 0.1, 0.2, 0.5}) {
    std::vector<double>& choice = choices.emplace_back();
    for (double tick = step; tick < 2.01; tick += step) choice.push_back(tick);
  }
  choices.push_back({0.25, 0.5, 1, 2, 4});
  choices.push_back({0.2, 1, 5});
  for (std::vector<double>& choice : choices) {
    std::erase_if(choice, [&](double tick) { return !x.Has(tick); });
    if (choice.size() > 1 && AreApart(choice, x, kTickGap)) return choice;
  }
  return {1};
}

void DrawAxis(Svg& svg, const Scale& x, const Box& plot) {
  for (const double tick : RatioTicks(x)) {
    svg.Line("grid", {x.At(tick), plot.y}, {x.At(tick), plot.bottom()});
    svg.Text("tick", {x.At(tick), plot.bottom() + 13}, Anchor::kMiddle,
             ShortNumber(tick));
  }
  svg.Text("axis", {plot.x + plot.width / 2, plot.bottom() + 28},
           Anchor::kMiddle, "← fused faster · slower →");
}

void DrawRow(Svg& svg, const RatioRow& row, const Scale& x, double y,
             double right) {
  const runtime::PairedEstimate& estimate = row.comparison.estimate;
  const Look& look = LookOf(row.comparison.verdict);
  const Interval interval = estimate.Widest();
  svg.Text("label", {0, y + 4}, Anchor::kStart,
           Shorten(row.label, static_cast<size_t>(kMostLabel / kCharacter)));
  if (estimate.rounds > 0) {
    if (estimate.rounds >= runtime::kLeastRounds)
      svg.Whisker(fmt::format("whisker {}", look.classes), x.At(interval.low),
                  x.At(interval.high), y);
    svg.Mark(look.classes, look.shape, {x.At(estimate.ratio), y}, Tip(row));
  }
  svg.Text("value", {right, y + 4}, Anchor::kEnd, InBrief(row.comparison));
}

}  // namespace

void Widen(const std::vector<RatioRow>& rows, double& low, double& high) {
  low = std::min(low, 0.9);
  high = std::max(high, 1.1);
  for (const RatioRow& row : rows) {
    const Interval interval = row.comparison.estimate.Widest();
    const double noise = 1 + std::min(row.comparison.noise, 1.0);
    for (const double value : {interval.low, interval.high, noise, 1 / noise}) {
      if (!std::isfinite(value) || value <= 0) continue;
      low = std::clamp(value * 0.97, kLowest, low);
      high = std::clamp(value * 1.03, high, kHighest);
    }
  }
}

std::string Render(const RatioChart& chart) {
  const double rows = static_cast<double>(chart.rows.size()) * kRow;
  Svg svg(chart.text.id, kChartWidth, kTop + rows + kAxis, chart.text.title,
          chart.text.description);
  // Marks at the ends of the axis stay inside.
  const double label = LabelWidth(chart);
  const Box plot{label + kGap, kTop, kChartWidth - label - kWords - 2 * kGap,
                 rows};
  const Scale x{chart.low, chart.high, plot.x + 5, plot.right() - 5, true};
  svg.Rect("plot", plot);
  double y = plot.y + kRow / 2;
  for (const RatioRow& row : chart.rows) {
    const double noise = 1 + std::min(row.comparison.noise, 1e3);
    const double left = x.At(1 / noise);
    svg.Rect("band", {left, y - kRow / 2, x.At(noise) - left, kRow});
    y += kRow;
  }
  DrawAxis(svg, x, plot);
  svg.Line("one", {x.At(1), plot.y}, {x.At(1), plot.bottom()});
  y = plot.y + kRow / 2;
  for (const RatioRow& row : chart.rows) {
    DrawRow(svg, row, x, y, kChartWidth - 1);
    y += kRow;
  }
  return std::move(svg).Finish();
}

}  // namespace addnorm::tool::html
