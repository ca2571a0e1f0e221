// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/option_checks.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <system_error>

#include "fmt/format.h"
#include "passes/ir/printable.h"

namespace addnorm::tool {
namespace {

// The whole text as a decimal number.
template <typename T>
std::optional<T> Parse(const std::string& text) {
  T number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

CLI::Validator NotEmpty() {
  return {[](std::string& text) {
            return text.empty() ? "expected a path, found an empty word" : "";
          },
          ""};
}

CLI::Validator WholeNumber(uint64_t least, uint64_t most) {
  return {[least, most](std::string& text) -> std::string {
            const auto number = Parse<uint64_t>(text);
            if (!number || *number < least || *number > most) {
              return fmt::format("{} is not a whole number from {} to {}",
                                 ir::Printable(text), least, most);
            }
            text = std::to_string(*number);
            return "";
          },
          ""};
}

CLI::Validator NumberFrom(double least, double most) {
  return {[least, most](std::string& text) -> std::string {
            const auto number = Parse<double>(text);
            if (number && std::isfinite(*number) && *number >= least &&
                *number <= most)
              return "";
            return fmt::format(
                "{} is not a number from {} {}", ir::Printable(text), least,
                std::isfinite(most) ? fmt::format("to {}", most) : "on");
          },
          ""};
}

}  // namespace addnorm::tool
