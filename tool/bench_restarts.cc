// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_restarts.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "tool/machine_facts.h"

extern char** environ;

namespace addnorm::tool {
namespace {

using Json = nlohmann::ordered_json;

// What the descriptor gives until its end; closes it.
std::string ReadAll(int descriptor) {
  std::string bytes;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = read(descriptor, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    bytes.append(buffer, static_cast<size_t>(got));
  }
  close(descriptor);
  return bytes;
}

absl::Status Failed(int status, const std::string& out) {
  std::string reason = WIFEXITED(status)
                           ? fmt::format("exit {}", WEXITSTATUS(status))
                           : fmt::format("signal {}", WTERMSIG(status));
  const Json json = Json::parse(out, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("error"))
    reason += ": " + json["error"].get<std::string>();
  return absl::UnavailableError(
      fmt::format("--restarts: the restarted process failed ({})", reason));
}

// The standard output of this program, run with these words.
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe(ends) != 0) return proto::ErrnoError(errno, "--restarts");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<char*> arguments;
  for (const std::string& word : words)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, "/proc/self/exe", &actions, nullptr,
                                arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return proto::ErrnoError(error, "--restarts");
  }
  std::string out = ReadAll(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Failed(status, out);
  return out;
}

// What another version of the program prints would not fit.
bool Append(const Json& json, const std::vector<BenchCase*>& cases) {
  if (!json.is_object() || json.value("cases", Json()).size() != cases.size())
    return false;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Json arms = json["cases"][i].value("arms", Json());
    if (arms.size() != cases[i]->arms.size()) return false;
    for (size_t j = 0; j < arms.size(); ++j) {
      for (const Json& seconds : arms[j]["seconds"])
        cases[i]->arms[j].processes.push_back(seconds);
    }
  }
  return true;
}

}  // namespace

std::vector<std::string> RestartCommand(std::vector<std::string> words) {
  // With values of their own; --force has none, and means nothing without.
  constexpr std::string_view kLeftOut[] = {"--restarts", "--html"};
  const auto is_left_out = [&](std::string_view word) {
    return std::any_of(
        std::begin(kLeftOut), std::end(kLeftOut), [&](std::string_view name) {
          return word == name || word.starts_with(std::string(name) + "=");
        });
  };
  std::vector<std::string> kept;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--force") continue;
    if (!is_left_out(words[i]))
      kept.push_back(words[i]);
    else if (words[i].find('=') == std::string::npos)
      ++i;
  }
  const auto bench = std::find(kept.begin(), kept.end(), "bench");
  if (bench != kept.end()) kept.insert(std::next(bench), {"--json", "-q"});
  return kept;
}

absl::Status AddRestarts(int count, const std::vector<BenchCase*>& cases) {
  const std::vector<std::string> command = RestartCommand(OwnCommand());
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const std::string out, OutputOf(command));
    if (!Append(Json::parse(out, nullptr, /*allow_exceptions=*/false), cases))
      return absl::InternalError("--restarts: cannot read the process's times");
  }
  return absl::OkStatus();
}

}  // namespace addnorm::tool
