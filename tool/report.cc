// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/report.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fmt/format.h"

namespace addnorm::tool {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kSmallestColumn = 12;

bool IsContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

std::string Aligned(std::string_view cell, char alignment, size_t width) {
  const std::string padding(width - std::min(width, Columns(cell)), ' ');
  return alignment == '>' ? padding + std::string(cell)
                          : std::string(cell) + padding;
}

}  // namespace

void Table::AddRow(std::vector<std::string> cells) {
  cells.resize(alignment_.size());
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::ColumnWidths(size_t width) const {
  std::vector<size_t> widths(alignment_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], Columns(row[i]));
  }
  const size_t total =
      std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
  const size_t excess = total - std::min(total, width);
  const size_t cut = widths[0] - std::min(widths[0], excess);
  widths[0] = std::min(widths[0], std::max(cut, kSmallestColumn));
  return widths;
}

std::string Table::Render(size_t width) const {
  const std::vector<size_t> widths = ColumnWidths(width);
  std::string out;
  for (const auto& row : rows_) {
    std::string line =
        Aligned(Shorten(row[0], widths[0]), alignment_[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i) {
      line +=
          std::string(kGap, ' ') + Aligned(row[i], alignment_[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

size_t Columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return !IsContinuation(c); }));
}

std::string Shorten(std::string_view text, size_t columns) {
  if (Columns(text) <= columns) return std::string(text);
  size_t end = 0;
  for (size_t kept = 0; kept + 1 < columns; ++kept) {
    do ++end;
    while (end < text.size() && IsContinuation(text[end]));
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string Paragraph(std::string_view first, std::string_view text,
                      size_t width) {
  const size_t indent = Columns(first);
  std::string out(first);
  size_t used = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const bool starts_line = used == indent;
    if (!starts_line && used + 1 + Columns(word) > width) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!starts_line) {
      out += ' ';
      ++used;
    }
    out += word;
    used += Columns(word);
  }
  return out + "\n";
}

std::string FormatSeconds(double seconds) {
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1000)
                     : fmt::format("{:.2f} s", seconds);
}

std::string Percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

std::string Plural(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace addnorm::tool
