// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// ONNX's own checker, as advice: it reads the whole file, passes wrong external
// offsets and refuses some valid models of ONNX Runtime. Nothing here relies on
// it.
//
//   if (absl::Status advice = Check("out.onnx"); !advice.ok())
//   Warn(advice.message());
#ifndef ADDNORM_PROTO_CHECK_H_
#define ADDNORM_PROTO_CHECK_H_

#include <string>

#include "absl/status/status.h"

namespace addnorm::proto {

// InvalidArgument with the checker's own words.
absl::Status Check(const std::string& path);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_CHECK_H_
