// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/suggestion.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/printable.h"

namespace addnorm::tool {
namespace {

// Levenshtein's distance: how many letters to insert, drop or replace.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string Suggestion(std::string_view given,
                       const std::vector<std::string>& choices) {
  const auto distance = [given](const std::string& choice) {
    return Distance(given, choice);
  };
  const auto nearest =
      std::min_element(choices.begin(), choices.end(),
                       [&](const std::string& a, const std::string& b) {
                         return distance(a) < distance(b);
                       });
  // Of a name of one letter nothing is left where that is another.
  if (nearest == choices.end() || distance(*nearest) >= given.size() ||
      distance(*nearest) > 1 + given.size() / 4)
    return "";
  return fmt::format("; did you mean '{}'?", ir::Printable(*nearest));
}

}  // namespace addnorm::tool
