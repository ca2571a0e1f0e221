// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What the process answers to its caller, and the one place where an
// absl::Status becomes such an answer. Messages are in the Status, not here.
//
//   return ToExitCode(status.code());
#ifndef ADDNORM_TOOL_EXIT_CODE_H_
#define ADDNORM_TOOL_EXIT_CODE_H_

#include "absl/status/status.h"

namespace addnorm::tool {

enum class ExitCode : int {
  kDone = 0,          // also when there was nothing to do
  kNo = 1,            // the answer is no: an expectation was not met
  kUsage = 2,         // a wrong command line, or a request that is refused
  kModel = 3,         // the model is invalid or not supported
  kSystem = 4,        // the file system, or memory
  kBug = 70,          // ours
  kInterrupted = 130  // as shells report a process that SIGINT ended
};

constexpr ExitCode ToExitCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return ExitCode::kDone;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
      return ExitCode::kUsage;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kDataLoss:
      return ExitCode::kModel;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
      return ExitCode::kSystem;
    case absl::StatusCode::kCancelled:
      return ExitCode::kInterrupted;
    default:  // kInternal, kUnknown, and codes that abseil may add
      return ExitCode::kBug;
  }
}

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_EXIT_CODE_H_
