// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The building blocks of what commands print: tables, wrapped text, numbers.
// It knows nothing of models; site_report.h and the commands do.
//
//   Table table("<>>");
//   table.AddRow({"Add", "49", "25"});
//   text += table.Render(terminal.width);
#ifndef ADDNORM_TOOL_REPORT_H_
#define ADDNORM_TOOL_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/format_bytes.h"

namespace addnorm::tool {

// Columns of cells, two spaces apart. Cells are plain text; colour would count
// as width. Where a line is too long, the first column is cut.
class Table {
 public:
  // One '<' (text) or '>' (numbers) for each column.
  explicit Table(std::string_view alignment) : alignment_(alignment) {}

  void AddRow(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  std::string Render(size_t width) const;

 private:
  std::vector<size_t> ColumnWidths(size_t width) const;

  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

// Columns that UTF-8 text takes, a code point as one.
size_t Columns(std::string_view text);

// The text, or its beginning and "…", in at most `columns` columns.
std::string Shorten(std::string_view text, size_t columns);

// One paragraph: lines broken at spaces where they fit; words are never broken.
// The first line starts with `first`, the others with as many spaces.
std::string Paragraph(std::string_view first, std::string_view text,
                      size_t width);

using proto::FormatBytes;

// "3.2 ms", "1.25 s".
std::string FormatSeconds(double seconds);

// Of a share of 1: "15 %".
std::string Percent(double share);

// "1 site", "2 sites".
std::string Plural(int64_t count, std::string_view noun);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_REPORT_H_
