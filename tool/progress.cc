// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/progress.h"

#include <cmath>

#include "fmt/format.h"
#include "tool/output.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

// Shorter work needs no line; faster changes cannot be read.
constexpr std::chrono::milliseconds kDelay{500};
constexpr std::chrono::milliseconds kInterval{100};

constexpr double kLeastShare = 0.01;

// To the start of the line, and away with what was there.
constexpr const char* kErase = "\r\x1b[K";

std::string TimeLeft(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  return whole < 120 ? fmt::format("{} s left", whole)
                     : fmt::format("{} min left", (whole + 59) / 60);
}

}  // namespace

std::string ProgressText(uint64_t done, uint64_t total, double seconds) {
  const double share =
      total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  std::string text =
      fmt::format("{} of {} ({} %)", FormatBytes(done), FormatBytes(total),
                  static_cast<int>(share * 100));
  // What the system has taken is not yet on the disk.
  if (done >= total) return text + ", waiting for the disk";
  // Of less than that, the rate says nothing yet.
  if (share >= kLeastShare)
    text += ", " + TimeLeft(seconds * (1 - share) / share);
  return text;
}

std::string NodeProgressText(uint64_t done, uint64_t total, double seconds) {
  const double share =
      total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  std::string text = fmt::format("node {} of {} ({} %)", done + 1, total,
                                 static_cast<int>(share * 100));
  if (share >= kLeastShare)
    text += ", " + TimeLeft(seconds * (1 - share) / share);
  return text;
}

Progress::Progress(bool is_shown, TextFunction text)
    : is_shown_(is_shown),
      text_(text),
      start_(Clock::now()),
      next_(start_ + kDelay) {}

void Progress::Update(uint64_t done, uint64_t total) {
  if (!is_shown_) return;
  const Clock::time_point now = Clock::now();
  const bool is_last = done >= total && has_line_;
  if (now < next_ && !is_last) return;
  next_ = now + kInterval;
  has_line_ = true;
  const std::chrono::duration<double> elapsed = now - start_;
  WriteStderr(kErase + text_(done, total, elapsed.count()));
}

void Progress::Erase() {
  if (has_line_) WriteStderr(kErase);
  has_line_ = false;
}

}  // namespace addnorm::tool
