// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/errors.h"

#include <cctype>
#include <cerrno>
#include <system_error>

namespace addnorm::proto {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

std::string ErrnoText(int error) {
  std::string text = std::generic_category().message(error);
  // "No space left on device", but "RPC struct is bad".
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1]))) {
    text[0] =
        static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

absl::Status ErrnoError(int error, std::string_view subject) {
  return absl::Status(CodeOf(error),
                      fmt::format("{}: {}", subject, ErrnoText(error)));
}

absl::Status WithContext(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  const std::string_view message(status.message().data(),
                                 status.message().size());
  return absl::Status(status.code(), fmt::format("{}: {}", context, message));
}

absl::Status WithHint(const absl::Status& status, std::string_view hint) {
  const std::string_view message(status.message().data(),
                                 status.message().size());
  constexpr std::string_view kMark = "\nhint: ";
  if (status.ok() || message.find(kMark) != message.npos) return status;
  return absl::Status(status.code(),
                      fmt::format("{}{}{}", message, kMark, hint));
}

}  // namespace addnorm::proto
