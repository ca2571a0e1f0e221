// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Propagation of absl::Status, which abseil does not ship; for .cc files only.
//
//   RETURN_IF_ERROR(file.Read(0, 8, head));
//   ASSIGN_OR_RETURN(Rope rope, splice.Build());
#ifndef ADDNORM_PASSES_IR_STATUS_MACROS_H_
#define ADDNORM_PASSES_IR_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define RETURN_IF_ERROR(expression)                                         \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define ASSIGN_OR_RETURN_CONCAT_(a, b) a##b
#define ASSIGN_OR_RETURN_NAME_(line) ASSIGN_OR_RETURN_CONCAT_(status_or_, line)
#define ASSIGN_OR_RETURN_IMPL_(result, target, expression) \
  auto result = (expression);                              \
  if (!result.ok()) return std::move(result).status();     \
  target = *std::move(result)
#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_IMPL_(ASSIGN_OR_RETURN_NAME_(__LINE__), target, expression)

#endif  // ADDNORM_PASSES_IR_STATUS_MACROS_H_
