// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What this process knows about its terminal: colour, width, logging. Colour is
// decided here, once, and nowhere else. It prints nothing; output.cc does.
//
//   const Terminal terminal = Terminal::Detect(ColorMode::kAuto);
//   fmt::print("{}", terminal.Paint(Style::kGood, "fused"));
#ifndef ADDNORM_TOOL_TERM_H_
#define ADDNORM_TOOL_TERM_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace addnorm::tool {

enum class ColorMode { kAuto, kAlways, kNever };

enum class Style { kGood, kBad, kNote, kStrong };

struct Terminal {
  bool color = false;         // of results
  bool color_errors = false;  // of stderr
  size_t width = 100;         // columns to fill, at most 100
  // stderr is a terminal whose line can be written again.
  bool shows_progress = false;

  // Looks at the mode, NO_COLOR, TERM, and whether the outputs are terminals.
  static Terminal Detect(ColorMode mode);

  std::string Paint(Style style, std::string_view text) const;
  std::string PaintError(Style style, std::string_view text) const;
};

// Diagnostics go to stderr through spdlog, from `verbosity` -1 (errors only)
// over 0 (warnings) and 1 (info) to 2 (debug).
void SetUpLogging(const Terminal& terminal, int verbosity);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_TERM_H_
