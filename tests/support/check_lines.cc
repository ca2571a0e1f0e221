// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/check_lines.h"

#include "fmt/format.h"

namespace addnorm::tests {
namespace {

// The first of the forbidden substrings that stands in the region.
std::string FindForbidden(const std::vector<const CheckLine*>& forbidden,
                          std::string_view region) {
  for (const CheckLine* line : forbidden) {
    if (region.find(line->text) != std::string_view::npos) {
      return fmt::format("CHECK-NOT: '{}' stands in\n{}", line->text, region);
    }
  }
  return "";
}

}  // namespace

std::string Mismatch(const std::vector<CheckLine>& lines,
                     std::string_view text) {
  std::vector<const CheckLine*> forbidden;
  size_t end_of_last = 0;
  for (const CheckLine& line : lines) {
    if (line.is_not) {
      forbidden.push_back(&line);
      continue;
    }
    const size_t found = text.find(line.text, end_of_last);
    if (found == std::string_view::npos) {
      return fmt::format("CHECK: '{}' does not stand in\n{}", line.text,
                         text.substr(end_of_last));
    }
    const std::string_view between =
        text.substr(end_of_last, found - end_of_last);
    if (std::string problem = FindForbidden(forbidden, between);
        !problem.empty())
      return problem;
    forbidden.clear();
    end_of_last = found + line.text.size();
  }
  return FindForbidden(forbidden, text.substr(end_of_last));
}

}  // namespace addnorm::tests
