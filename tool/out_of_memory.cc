// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/out_of_memory.h"

#include <unistd.h>

#include <atomic>
#include <new>
#include <string_view>

#include "proto/removal_guard.h"

namespace addnorm::tool {
namespace {

constexpr std::string_view kText = "error: out of memory\n";
constexpr std::string_view kJson =
    R"({"schema": "onnx-addnorm/error/1", "exit_code": 4, )"
    R"("error": "out of memory"})"
    "\n";
static_assert(static_cast<int>(ExitCode::kSystem) == 4);

std::atomic<bool> answers_in_json{false};
std::atomic<bool> is_answered{false};
std::atomic<ExitCode> exit_code{ExitCode::kSystem};
std::atomic_flag is_ending = ATOMIC_FLAG_INIT;

// Nobody is left to tell of a failure.
void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

// Allocates nothing.
[[noreturn]] void End() {
  // One thread ends the process; others that fail meanwhile wait for it.
  while (is_ending.test_and_set()) ::pause();
  proto::RemoveGuarded();
  if (!is_answered) {
    if (answers_in_json) WriteAll(STDOUT_FILENO, kJson);
    WriteAll(STDERR_FILENO, kText);
  }
  ::_exit(static_cast<int>(exit_code.load()));
}

}  // namespace

void EndWhenOutOfMemory(std::span<char* const> args) {
  for (const std::string_view arg : args) {
    if (arg == "--") break;
    if (arg == "--json") answers_in_json = true;
  }
  std::set_new_handler(End);
}

void IgnoreOutOfMemory(ExitCode answer) {
  exit_code = answer;
  is_answered = true;
}

}  // namespace addnorm::tool
