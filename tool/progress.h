// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// One line on a terminal that says how far a long copy or run is. Short work
// shows nothing; the line is erased at the end.
//
//   Progress progress(terminal.shows_progress);
//   options.on_progress = [&](uint64_t done, uint64_t total) {
//     progress.Update(done, total);
//   };
#ifndef ADDNORM_TOOL_PROGRESS_H_
#define ADDNORM_TOOL_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace addnorm::tool {

// "1.2 GB of 4.8 GB (25 %), 6 s left"
std::string ProgressText(uint64_t done, uint64_t total, double seconds);
// "node 120 of 412 (29 %), 3 s left"
std::string NodeProgressText(uint64_t done, uint64_t total, double seconds);

class Progress {
 public:
  using TextFunction = std::string (*)(uint64_t done, uint64_t total,
                                       double seconds);

  // Starts the clock.
  explicit Progress(bool is_shown, TextFunction text = ProgressText);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { Erase(); }

  void Update(uint64_t done, uint64_t total);
  void Erase();

 private:
  using Clock = std::chrono::steady_clock;

  bool is_shown_;
  TextFunction text_;
  bool has_line_ = false;
  Clock::time_point start_;
  Clock::time_point next_;  // when the line may be written again
};

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_PROGRESS_H_
