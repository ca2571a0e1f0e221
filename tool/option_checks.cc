// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/option_checks.h"

#include <cmath>

#include "CLI/App.hpp"
#include "fmt/format.h"
#include "passes/ir/printable.h"

namespace addnorm::tool {

std::string CheckPath(const std::string& text) {
  return text.empty() ? "expected a path, found an empty word" : "";
}

std::function<std::string(const std::string&)> NumberFrom(double low,
                                                          double high) {
  return [low, high](const std::string& text) -> std::string {
    double number = 0;
    if (CLI::detail::lexical_cast(text, number) && std::isfinite(number) &&
        low <= number && number <= high)
      return "";
    return fmt::format("{} is not a number from {} {}", ir::Printable(text),
                       low,
                       std::isfinite(high) ? fmt::format("to {}", high) : "on");
  };
}

}  // namespace addnorm::tool
