// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The three kinds of charts of a report, each a row of data in and SVG out:
// ratios with intervals against the noise, bars in pairs, and lines or marks
// over two axes. What they show of a benchmark is decided elsewhere
// (kernel_page.cc, model_page.cc).
//
//   page += Render(RatioChart{.id = "r1", .title = "Plain stores", .rows = …});
#ifndef ADDNORM_TOOL_HTML_CHARTS_H_
#define ADDNORM_TOOL_HTML_CHARTS_H_

#include <optional>
#include <string>
#include <vector>

#include "tool/bench_comparison.h"
#include "tool/html/svg.h"

namespace addnorm::tool::html {

struct ChartText {
  std::string id;           // unique in the page
  std::string title;        // what it shows
  std::string description;  // what there is to be seen, for who cannot
};

// ---- ratios: 1 in the middle of a band, which is the noise

struct RatioRow {
  std::string label;
  ArmComparison comparison;
};

struct RatioChart {
  ChartText text;
  std::vector<RatioRow> rows;
  double low = 0.5, high = 2;  // of the axis, the same in charts side by side
};
std::string Render(const RatioChart& chart);

// From below the lowest to above the highest, round, 1 well inside.
void Widen(const std::vector<RatioRow>& rows, double& low, double& high);

// ---- bars

struct Bar {
  std::string classes;  // "fused", "unfused"
  double value = 0;
  std::optional<runtime::Interval> interval;
  std::string text;  // at its end
  std::string tip;
};

struct BarGroup {
  std::string label;
  std::string note;  // below the label
  std::vector<Bar> bars;
};

struct BarChart {
  ChartText text;
  std::string axis;  // what values are
  std::vector<BarGroup> groups;
  std::optional<runtime::Interval> band;
};
std::string Render(const BarChart& chart);

// ---- two logarithmic axes

enum class Unit : uint8_t { kNumber, kBytes };

struct Axis {
  std::string name;
  double low = 1, high = 10;
  Unit unit = Unit::kNumber;
};

struct Series {
  std::string classes;  // of its line and marks
  Shape shape = Shape::kCircle;
  bool has_line = true, has_marks = true;
  std::vector<Point> points;
  std::vector<std::string> tips;  // of points; may be empty
};

// A vertical line: "L2 2 MiB".
struct Guide {
  std::string label;
  double x = 0;
};

// Of values that are to be on an axis; what is no positive number is left out.
class Range {
 public:
  void Add(double value);
  // Widened by factors; some range if there was no value.
  Axis ToAxis(std::string name, double below, double above,
              Unit unit = Unit::kNumber) const;

 private:
  double low_ = 0, high_ = 0;  // 0: none yet
};
void AddPoints(const std::vector<Series>& series, Range& x, Range& y);

struct XyChart {
  ChartText text;
  Axis x, y;
  std::vector<Guide> guides;
  std::vector<Series> series;
};
std::string Render(const XyChart& chart);

// A mark as it is in charts, for a legend.
std::string LegendKey(const Series& series);

}  // namespace addnorm::tool::html

#endif  // ADDNORM_TOOL_HTML_CHARTS_H_
