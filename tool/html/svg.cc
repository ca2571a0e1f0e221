// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/html/svg.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "tool/html/markup.h"
#include "tool/report.h"

namespace addnorm::tool::html {
namespace {

constexpr double kMarkRadius = 4;

// Every n-th of them, so that they stand apart.
std::vector<double> Thinned(const std::vector<double>& values,
                            const Scale& scale, double gap) {
  for (size_t step = 1; step < values.size(); ++step) {
    std::vector<double> kept;
    for (size_t i = 0; i < values.size(); i += step) kept.push_back(values[i]);
    if (AreApart(kept, scale, gap)) return kept;
  }
  return values.empty() ? values : std::vector<double>{values.front()};
}

std::vector<double> LinearTicks(const Scale& scale, double gap) {
  // Places within a tenth of a power of ten are surely too many.
  const double span = scale.high - scale.low;
  double power = std::pow(10, std::floor(std::log10(span)) - 1);
  for (; power <= span; power *= 10) {
    for (const double factor : {1, 2, 5}) {
      const double step = factor * power;
      std::vector<double> ticks;
      for (double i = std::ceil(scale.low / step - 1e-9);
           i * step <= scale.high + 1e-9 * span; ++i)
        ticks.push_back(i * step);
      if (AreApart(ticks, scale, gap)) return ticks;
    }
  }
  return {scale.low};
}

// Of each decade, as many as there is room for.
std::vector<double> LogarithmicTicks(const Scale& scale, double gap) {
  std::vector<double> ticks;
  for (const std::vector<double>& factors :
       {std::vector<double>{1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9},
        {1, 2, 3, 5, 7},
        {1, 2, 5},
        {1, 3},
        {1}}) {
    ticks.clear();
    const double end = std::floor(std::log10(scale.high));
    for (double power = std::floor(std::log10(scale.low)); power <= end;
         ++power) {
      for (const double factor : factors) {
        const double value = factor * std::pow(10, power);
        if (scale.Has(value)) ticks.push_back(value);
      }
    }
    if (AreApart(ticks, scale, gap)) return ticks;
  }
  return Thinned(ticks, scale, gap);
}

std::string PathOf(Shape shape, const Point& at) {
  constexpr double r = kMarkRadius;
  switch (shape) {
    case Shape::kTriangle:
      return fmt::format("M{:.2f} {:.2f}l{} {}h{}z", at.x, at.y - r - 0.5,
                         r + 0.5, 2 * r, -2 * r - 1);
    case Shape::kSquare:
      return fmt::format("M{:.2f} {:.2f}h{}v{}h{}z", at.x - r + 0.5,
                         at.y - r + 0.5, 2 * r - 1, 2 * r - 1, 1 - 2 * r);
    case Shape::kDiamond:
      return fmt::format("M{:.2f} {:.2f}l{} {}l{} {}l{} {}z", at.x,
                         at.y - r - 1, r + 1, r + 1, -r - 1, r + 1, -r - 1,
                         -r - 1);
    case Shape::kCircle:
      break;
  }
  return fmt::format("M{:.2f} {:.2f}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z",
                     at.x - r, at.y, fmt::arg("r", r), fmt::arg("d", 2 * r));
}

std::string Element(std::string_view name, std::string_view classes,
                    std::string_view attributes, std::string_view tip) {
  return fmt::format("<{} class=\"{}\" {}", name, classes, attributes) +
         (tip.empty()
              ? "/>\n"
              : fmt::format("><title>{}</title></{}>\n", Escape(tip), name));
}

}  // namespace

double Scale::At(double value) const {
  // Also what is no number.
  if (!(value > low)) return from;
  if (value >= high) return to;
  const double share = is_logarithmic
                           ? std::log(value / low) / std::log(high / low)
                           : (value - low) / (high - low);
  return from + share * (to - from);
}

std::vector<double> Ticks(const Scale& scale, double gap) {
  return scale.is_logarithmic ? LogarithmicTicks(scale, gap)
                              : LinearTicks(scale, gap);
}

bool AreApart(const std::vector<double>& values, const Scale& scale,
              double gap) {
  for (size_t i = 1; i < values.size(); ++i) {
    if (std::abs(scale.At(values[i]) - scale.At(values[i - 1])) < gap)
      return false;
  }
  return true;
}

double WidthOf(std::string_view text) {
  return static_cast<double>(Columns(text)) * kCharacter;
}

std::string ShortNumber(double value) {
  return fmt::format("{:.4g}", value == 0 ? 0 : value);  // no "-0"
}

Svg::Svg(std::string_view id, double width, double height,
         std::string_view title, std::string_view description)
    : text_(fmt::format(
          "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" "
          "aria-labelledby=\"{id}-t {id}-d\">\n<title id=\"{id}-t\">{}</title>"
          "<desc id=\"{id}-d\">{}</desc>\n",
          width, height, Escape(title), Escape(description),
          fmt::arg("id", id))) {}

void Svg::Rect(std::string_view classes, const Box& box, std::string_view tip) {
  text_ += Element(
      "rect", classes,
      fmt::format(
          "x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"", box.x,
          box.y, box.width, box.height),
      tip);
}

void Svg::Line(std::string_view classes, const Point& from, const Point& to) {
  text_ += Element(
      "line", classes,
      fmt::format("x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\"",
                  from.x, from.y, to.x, to.y),
      {});
}

void Svg::Polyline(std::string_view classes, const std::vector<Point>& points) {
  std::string places;
  for (const Point& point : points)
    places += fmt::format("{}{:.2f},{:.2f}", places.empty() ? "" : " ", point.x,
                          point.y);
  text_ +=
      Element("polyline", classes, fmt::format("points=\"{}\"", places), {});
}

std::string MarkElement(std::string_view classes, Shape shape,
                        const Point& center, std::string_view tip) {
  return Element("path", fmt::format("mark {}", classes),
                 fmt::format("d=\"{}\"", PathOf(shape, center)), tip);
}

void Svg::Mark(std::string_view classes, Shape shape, const Point& center,
               std::string_view tip) {
  text_ += MarkElement(classes, shape, center, tip);
}

void Svg::Text(std::string_view classes, const Point& at, Anchor anchor,
               std::string_view text) {
  constexpr const char* kAnchors[] = {"start", "middle", "end"};
  text_ += fmt::format(
      "<text class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\">{}"
      "</text>\n",
      classes, at.x, at.y, kAnchors[static_cast<size_t>(anchor)], Escape(text));
}

void Svg::Whisker(std::string_view classes, double low, double high, double y) {
  constexpr double kEnd = 3;
  Line(classes, {low, y}, {high, y});
  for (const double x : {low, high})
    Line(classes, {x, y - kEnd}, {x, y + kEnd});
}

std::string Svg::Finish() && { return std::move(text_) + "</svg>\n"; }

}  // namespace addnorm::tool::html
