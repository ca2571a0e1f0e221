// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "proto/errors.h"
#include "tool/out_of_memory.h"

namespace addnorm::tool {
namespace {

using Json = nlohmann::ordered_json;

std::string ToText(const Failure& failure, const Terminal& terminal) {
  std::string text = fmt::format(
      "{} {}\n", terminal.PaintError(Style::kBad, "error:"), failure.error);
  if (!failure.hint.empty()) {
    text += fmt::format("{} {}\n", terminal.PaintError(Style::kNote, "hint:"),
                        failure.hint);
  }
  return text + failure.details;
}

Json ToJson(const std::string& command, const Answer& answer) {
  Json object{{"schema", SchemaOf(command)},
              {"exit_code", static_cast<int>(answer.exit_code)}};
  if (answer.failure) object["error"] = answer.failure->error;
  if (answer.failure && !answer.failure->hint.empty()) {
    object["hint"] = answer.failure->hint;
  }
  if (!answer.json.is_null()) object.update(answer.json);
  return object;
}

Answer FromStatus(const absl::Status& status) {
  Answer answer;
  answer.exit_code = ToExitCode(status.code());
  answer.failure = ToFailure(status);
  if (answer.exit_code == ExitCode::kBug && answer.failure->hint.empty()) {
    answer.failure->hint =
        "this is a bug in onnx-addnorm; please report it with this message "
        "and, if you can, the model";
  }
  return answer;
}

}  // namespace

ExitCode WriteStdout(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0) {
    return ExitCode::kDone;
  }
  if (errno == EPIPE) return ExitCode::kDone;
  WriteStderr(fmt::format("error: <stdout>: {}\n", proto::ErrnoText(errno)));
  return ExitCode::kSystem;
}

void WriteStderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

bool IsReaderGone() {
  pollfd descriptor{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&descriptor, 1, 0) == 1 &&
         (descriptor.revents & (POLLERR | POLLHUP)) != 0;
}

Failure ToFailure(const absl::Status& status) {
  constexpr std::string_view kHint = "\nhint: ";
  const std::string_view message(status.message().data(),
                                 status.message().size());
  const size_t end = message.find(kHint);
  if (end == std::string_view::npos) {
    return {.error = ir::Printable(message), .hint = ""};
  }
  return {.error = ir::Printable(message.substr(0, end)),
          .hint = ir::Printable(message.substr(end + kHint.size()))};
}

std::string SchemaOf(std::string_view command) {
  return fmt::format("onnx-addnorm/{}/1", command);
}

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

ExitCode Output::Print(absl::StatusOr<Answer> result,
                       const Terminal& terminal) const {
  const Answer answer =
      result.ok() ? *std::move(result) : FromStatus(result.status());
  // All of it before a part is printed: then there may be no more memory.
  const std::string object =
      json ? Dump(ToJson(command, answer)) + "\n" : std::string();
  const std::string failure =
      answer.failure ? ToText(*answer.failure, terminal) : std::string();
  ExitCode written = ExitCode::kDone;
  if (json) {
    written = WriteStdout(object);
  } else if (answer.stdout_is_taken) {
    if (!quiet) WriteStderr(answer.text);
  } else if (!answer.text.empty()) {
    written = WriteStdout(answer.text);
  }
  // What cannot be written is the error then.
  if (written == ExitCode::kDone) {
    WriteStderr(failure);
    written = answer.exit_code;
  }
  IgnoreOutOfMemory(written);
  return written;
}

}  // namespace addnorm::tool
