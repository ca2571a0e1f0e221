// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/html/frame.h"

#include <algorithm>

#include "fmt/format.h"
#include "tool/html/markup.h"
#include "tool/html/svg.h"
#include "tool/report.h"

namespace addnorm::tool::html {
namespace {

using Json = nlohmann::ordered_json;

// "l1_bytes": "l1", and its value as people read it.
std::string FactValue(std::string_view key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!key.ends_with("_bytes")) return value.dump();
  const auto bytes = value.get<uint64_t>();
  return bytes > 0 ? FormatBytes(bytes) : "unknown";
}

std::string FactName(std::string_view key) {
  struct Name {
    std::string_view key, name;
  };
  constexpr Name kNames[] = {{"cpu", "processor"},
                             {"cores", "cores"},
                             {"l1_bytes", "first-level cache"},
                             {"l2_bytes", "second-level cache"},
                             {"last_level_cache_bytes", "last-level cache"},
                             {"memory_bytes", "memory"},
                             {"available_bytes", "memory, available"},
                             {"simd", "SIMD target"},
                             {"governor", "frequency governor"},
                             {"load", "load before"},
                             {"flags", "compiler flags"},
                             {"command", "command line"}};
  for (const Name& known : kNames) {
    if (known.key == key) return std::string(known.name);
  }
  std::string name(key);
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

// All that the object says of the machine, whatever it is.
std::string MachineList(const Json& machine) {
  std::string list = "<dl class=\"facts\">\n";
  for (const auto& [key, value] : machine.items()) {
    if (value.is_null()) continue;
    list += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n",
                        Escape(FactName(key)), Escape(FactValue(key, value)));
  }
  return list + "</dl>\n";
}

// "2026-11-30T19:37:14Z" as "2026-11-30 19:37 UTC".
std::string DateText(std::string date) {
  const size_t t = date.find('T');
  if (t == std::string::npos) return date;
  return date.replace(t, 1, " ").substr(0, t + 6) + " UTC";
}

std::string Subtitle(const Json& machine) {
  return fmt::format("{} · {} · {}", machine.at("cpu").get<std::string>(),
                     Plural(machine.at("cores").get<int64_t>(), "core"),
                     DateText(machine.at("date").get<std::string>()));
}

std::string Points(const Summary& summary) {
  std::string list;
  for (const SummaryPoint& point : summary.points)
    list += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n",
                        Escape(point.lead), Escape(point.text));
  return list.empty() ? "" : "<dl class=\"points\">\n" + list + "</dl>\n";
}

std::string Links(const std::vector<Section>& sections) {
  std::string links;
  for (const Section& section : sections)
    links += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", section.id,
                         Escape(section.heading));
  return links;
}

std::string Sections(const std::vector<Section>& sections) {
  std::string text;
  for (const Section& section : sections)
    text += fmt::format(
        "<section id=\"{0}\" aria-labelledby=\"{0}-h\">\n<h2 "
        "id=\"{0}-h\">{1}</h2>\n{2}</section>\n",
        section.id, Escape(section.heading), section.content);
  return text;
}

}  // namespace

std::string RenderPage(const Page& page, const Json& report) {
  const Json& machine = report.at("machine");
  return Fill(kPageTemplate, {{"title", Escape(page.title)},
                              {"style", std::string(kPageStyle)},
                              {"subtitle", Escape(Subtitle(machine))},
                              {"headline", Escape(page.summary.headline)},
                              {"points", Points(page.summary)},
                              {"links", Links(page.sections)},
                              {"sections", Sections(page.sections)},
                              {"machine", MachineList(machine)},
                              {"method", std::string(page.method)},
                              {"data", InScript(report)}});
}

std::string Figure(const FigureText& text, const std::string& svg,
                   const std::string& numbers) {
  return fmt::format(
      "<figure>\n<h3>{}</h3>\n{}<figcaption>{}</figcaption>\n{}</figure>\n",
      Escape(text.heading), svg, Escape(text.caption),
      numbers.empty() ? "" : Details("Numbers", numbers));
}

std::string Paragraph(std::string_view text) {
  return fmt::format("<p>{}</p>\n", Escape(text));
}

std::string CommandLine(std::string_view command) {
  return fmt::format(
      "<pre class=\"scroll\" tabindex=\"0\" aria-label=\"Command\">{}</pre>\n",
      Escape(command));
}

std::string SideBySide(const std::string& figures) {
  return "<div class=\"figures\">\n" + figures + "</div>\n";
}

std::string Legend(const std::vector<LegendEntry>& entries) {
  std::string items;
  for (const LegendEntry& entry : entries)
    items += fmt::format("<li>{}<span>{}</span></li>\n", entry.key,
                         Escape(entry.name));
  return "<ul class=\"legend\">\n" + items + "</ul>\n";
}

std::vector<LegendEntry> BarKeys() {
  return {{"<span class=\"swatch unfused\"></span>", "unfused"},
          {"<span class=\"swatch fused\"></span>", "fused"},
          {"<span class=\"swatch band\"></span>", "noise (A/A)"}};
}

}  // namespace addnorm::tool::html
