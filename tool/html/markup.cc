// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/html/markup.h"

#include <algorithm>

#include "fmt/format.h"
#include "passes/ir/check.h"
#include "passes/ir/printable.h"

namespace addnorm::tool::html {
namespace {

std::string Cell(const char* tag, char alignment, std::string_view text) {
  return fmt::format("<{}{}>{}</{}>", tag,
                     alignment == '>' ? " class=\"number\"" : "", Escape(text),
                     std::string_view(tag).substr(0, 2));
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : ir::Printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string Table(const TableData& table) {
  const auto row = [&](const std::vector<std::string>& cells, const char* first,
                       const char* other) {
    std::string line = "<tr>";
    for (size_t i = 0; i < cells.size(); ++i)
      line += Cell(i == 0 ? first : other, table.alignment[i], cells[i]);
    return line + "</tr>\n";
  };
  std::string rows;
  for (const auto& cells : table.rows)
    rows += row(cells, "th scope=\"row\"", "td");
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">"
      "<table><caption>{0}</caption>\n<thead>{1}</thead>\n<tbody>{2}</tbody>"
      "</table></div>\n",
      Escape(table.caption),
      row(table.headings, "th scope=\"col\"", "th scope=\"col\""), rows);
}

std::string Details(std::string_view summary, std::string_view content) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n",
                     Escape(summary), content);
}

std::string InScript(const nlohmann::ordered_json& json) {
  using Json = nlohmann::ordered_json;
  const std::string text =
      json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  // In JSON "<" stands only in strings, where an escape means the same.
  for (const char c : text) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

std::string Fill(
    std::string_view text,
    const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string filled;
  while (true) {
    const size_t begin = text.find("{{");
    const size_t end = text.find("}}", begin);
    if (end == std::string_view::npos) return filled + std::string(text);
    filled += text.substr(0, begin);
    const std::string_view name = text.substr(begin + 2, end - begin - 2);
    const auto value =
        std::find_if(values.begin(), values.end(),
                     [&](const auto& v) { return v.first == name; });
    ADDNORM_CHECK(value != values.end(), "the template has an unknown name");
    filled += value->second;
    text.remove_prefix(end + 2);
  }
}

}  // namespace addnorm::tool::html
