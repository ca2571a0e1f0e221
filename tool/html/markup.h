// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Text and tables as HTML. All text that comes from outside goes through
// Escape, here or in svg.h: a model's name can be any bytes.
//
//   page += "<p>" + Escape(model_name) + "</p>";
#ifndef ADDNORM_TOOL_HTML_MARKUP_H_
#define ADDNORM_TOOL_HTML_MARKUP_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace addnorm::tool::html {

// For text and for values of attributes in double quotes; what is no UTF-8 and
// controls are made visible.
std::string Escape(std::string_view text);

// Columns of plain text; '<' is text, '>' a number, as in report.h. The first
// cell of a row is its heading.
struct TableData {
  std::string caption;
  std::string alignment;
  std::vector<std::string> headings;
  std::vector<std::vector<std::string>> rows;
};
// In a box that scrolls by itself, by keyboard too.
std::string Table(const TableData& table);

// What opens on demand: "Numbers", with a table inside.
std::string Details(std::string_view summary, std::string_view content);

// The value between <script type="application/json"> and its end: no text in it
// can end the element.
std::string InScript(const nlohmann::ordered_json& json);

// Replaces {{name}} in one pass; what is put in is not looked at again.
std::string Fill(
    std::string_view text,
    const std::vector<std::pair<std::string_view, std::string>>& values);

}  // namespace addnorm::tool::html

#endif  // ADDNORM_TOOL_HTML_MARKUP_H_
