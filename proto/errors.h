// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What a status code of this folder means, and errno as a status.
//
//   InvalidArgument      the model or its data are wrong                exit 3
//   Unimplemented        legal ONNX that is not supported here          exit 3
//   NotFound, PermissionDenied, ResourceExhausted, Unavailable
//                        the file system                                exit 4
//   FailedPrecondition   a request that is refused (overwriting, …)     exit 2
//   Internal             our bug                                        exit 70
//
// Messages are lower case, subject first, without a full stop; the way out, if
// there is one, follows on a line of its own that starts with "hint: ".
//
//   if (fd < 0) return ErrnoError(errno, path);  // "out.onnx: no space left on
//   device"
#ifndef ADDNORM_PROTO_ERRORS_H_
#define ADDNORM_PROTO_ERRORS_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"

namespace addnorm::proto {

// The text of an errno value, lower case: "permission denied".
std::string ErrnoText(int error);

// "subject: text", with the code that the errno value stands for.
absl::Status ErrnoError(int error, std::string_view subject);

// The same status with "context: " before its message; an OK status stays OK.
absl::Status WithContext(const absl::Status& status, std::string_view context);

// The same status with the way out after its message, unless it has one.
absl::Status WithHint(const absl::Status& status, std::string_view hint);

template <typename... Args>
absl::Status InvalidModel(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(
      fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_ERRORS_H_
