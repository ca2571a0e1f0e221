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

// The length of the well-formed UTF-8 sequence at the start of `text`; 0 if
// none. Overlong forms and surrogates pass: they are only printed.
size_t SequenceLength(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return length;
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

std::string Printable(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    const size_t length = SequenceLength(name);
    const auto first = static_cast<unsigned char>(name[0]);
    if (length == 0 || first < 0x20 || first == 0x7f) {
      out += fmt::format("\\x{:02x}", first);
      name.remove_prefix(1);
    } else {
      out += name.substr(0, length);
      name.remove_prefix(length);
    }
  }
  return out;
}

}  // namespace addnorm::proto
