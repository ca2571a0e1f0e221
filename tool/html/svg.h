// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// One chart as static SVG: shapes and text with classes, for which the page's
// style has colours in light and dark. Scales and ticks for its axes.
//
// It knows nothing of what is measured (charts.h). Numbers are user units,
// about one CSS pixel each on a narrow screen.
//
//   Svg svg("f1", 360, 120, "Time of a call", "Fused takes 0.8 of unfused.");
//   svg.Rect("fused", {60, 20, 100, 12}, "fused: 1.1 ms");
//   return std::move(svg).Finish();
#ifndef ADDNORM_TOOL_HTML_SVG_H_
#define ADDNORM_TOOL_HTML_SVG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace addnorm::tool::html {

// All charts are as wide: what a telephone shows unscaled.
inline constexpr double kChartWidth = 360;
// What a character of a label takes on average, in the widest of usual fonts.
inline constexpr double kCharacter = 6.9;

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
};

struct Point {
  double x = 0, y = 0;
};

// Places of values on an axis. What lies outside is put on its end.
struct Scale {
  double low = 0, high = 1;  // values
  double from = 0, to = 1;   // places
  bool is_logarithmic = false;

  double At(double value) const;
  bool Has(double value) const { return low <= value && value <= high; }
};

// Round values within the scale, as many as stand `gap` apart.
std::vector<double> Ticks(const Scale& scale, double gap);
// Whether the places of these values are so far apart.
bool AreApart(const std::vector<double>& values, const Scale& scale,
              double gap);

// "0.25", "3", "40": as few digits as a tick needs.
std::string ShortNumber(double value);
// What a text takes, about.
double WidthOf(std::string_view text);

enum class Shape : uint8_t { kCircle, kTriangle, kSquare, kDiamond };
enum class Anchor : uint8_t { kStart, kMiddle, kEnd };

// One mark as it is in charts, for legends.
std::string MarkElement(std::string_view classes, Shape shape,
                        const Point& center, std::string_view tip = {});

class Svg {
 public:
  // The title is what a screen reader reads first, then the description.
  Svg(std::string_view id, double width, double height, std::string_view title,
      std::string_view description);

  // A tip, if any, shows under the pointer.
  void Rect(std::string_view classes, const Box& box,
            std::string_view tip = {});
  void Line(std::string_view classes, const Point& from, const Point& to);
  void Polyline(std::string_view classes, const std::vector<Point>& points);
  void Mark(std::string_view classes, Shape shape, const Point& center,
            std::string_view tip = {});
  void Text(std::string_view classes, const Point& at, Anchor anchor,
            std::string_view text);
  // An interval: a line with an end to either side.
  void Whisker(std::string_view classes, double low, double high, double y);

  std::string Finish() &&;

 private:
  std::string text_;
};

}  // namespace addnorm::tool::html

#endif  // ADDNORM_TOOL_HTML_SVG_H_
