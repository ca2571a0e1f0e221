// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What all pages have: head, summary, sections, the machine, the method, the
// data. Its texts are page.html, page.css and *_method.html, which CMake puts
// into the program.
//
//   return RenderPage({.title = "…", .summary = Summarize(cases), …}, report);
#ifndef ADDNORM_TOOL_HTML_FRAME_H_
#define ADDNORM_TOOL_HTML_FRAME_H_

#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"
#include "tool/html/bench_words.h"

namespace addnorm::tool::html {

// Texts of the files, see page_text.cc.in.
extern const std::string_view kPageTemplate, kPageStyle;
extern const std::string_view kKernelMethod, kModelMethod;

struct Section {
  std::string id, heading;
  std::string content;  // HTML
};

struct Page {
  std::string title;
  Summary summary;
  std::vector<Section> sections;
  std::string_view method;
};
std::string RenderPage(const Page& page, const nlohmann::ordered_json& report);

// A chart with its heading, words below, and its numbers as a table.
struct FigureText {
  std::string heading;
  std::string caption;
};
std::string Figure(const FigureText& text, const std::string& svg,
                   const std::string& numbers);

std::string Paragraph(std::string_view text);
// A command in a line of its own.
std::string CommandLine(std::string_view command);
// Figures side by side, as many as fit.
std::string SideBySide(const std::string& figures);
// Keys are SVG (LegendKey), names are text.
struct LegendEntry {
  std::string key, name;
};
std::string Legend(const std::vector<LegendEntry>& entries);
// Of charts with bars: unfused, fused, noise.
std::vector<LegendEntry> BarKeys();

}  // namespace addnorm::tool::html

#endif  // ADDNORM_TOOL_HTML_FRAME_H_
