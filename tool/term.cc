// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/term.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <utility>

#include "fmt/color.h"
#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace addnorm::tool {
namespace {

constexpr size_t kMaxWidth = 100;

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool WantsColor(ColorMode mode, int descriptor) {
  if (mode != ColorMode::kAuto) return mode == ColorMode::kAlways;
  return Environment("NO_COLOR").empty() && Environment("TERM") != "dumb" &&
         isatty(descriptor) == 1;
}

size_t Width(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return kMaxWidth;
  return std::clamp<size_t>(size.ws_col, 40, kMaxWidth);
}

std::string Colored(bool color, Style style, std::string_view text) {
  if (!color) return std::string(text);
  switch (style) {
    case Style::kGood:
      return fmt::format(fmt::fg(fmt::terminal_color::green), "{}", text);
    case Style::kBad:
      return fmt::format(
          fmt::fg(fmt::terminal_color::red) | fmt::emphasis::bold, "{}", text);
    case Style::kNote:
      return fmt::format(fmt::fg(fmt::terminal_color::cyan), "{}", text);
    case Style::kStrong:
      return fmt::format(fmt::emphasis::bold, "{}", text);
  }
  return std::string(text);
}

// A log line's message, "%*" in a pattern: libraries log names as they are.
class PrintableMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    const std::string text = ir::Printable(
        std::string_view(message.payload.data(), message.payload.size()));
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableMessage>();
  }
};

}  // namespace

Terminal Terminal::Detect(ColorMode mode) {
  return {.color = WantsColor(mode, STDOUT_FILENO),
          .color_errors = WantsColor(mode, STDERR_FILENO),
          .width = Width(STDOUT_FILENO),
          .shows_progress =
              isatty(STDERR_FILENO) == 1 && Environment("TERM") != "dumb"};
}

std::string Terminal::Paint(Style style, std::string_view text) const {
  return Colored(color, style, text);
}

std::string Terminal::PaintError(Style style, std::string_view text) const {
  return Colored(color_errors, style, text);
}

void SetUpLogging(const Terminal& terminal, int verbosity) {
  constexpr spdlog::level::level_enum kLevels[] = {
      spdlog::level::err, spdlog::level::warn, spdlog::level::info,
      spdlog::level::debug};
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_st>(
      terminal.color_errors ? spdlog::color_mode::always
                            : spdlog::color_mode::never);
  auto logger = std::make_shared<spdlog::logger>("", std::move(sink));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('*').set_pattern("%^%l%$: %*");
  logger->set_formatter(std::move(formatter));
  logger->set_level(kLevels[std::clamp(verbosity, -1, 2) + 1]);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace addnorm::tool
