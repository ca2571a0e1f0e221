// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/check.h"

#include <exception>

#include "onnx/checker.h"
#include "proto/errors.h"

namespace addnorm::proto {

absl::Status Check(const std::string& path) {
  try {
    onnx::checker::check_model(path, /*full_check=*/true);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return absl::OkStatus();
}

}  // namespace addnorm::proto
