// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Files that fit into memory: read as a whole, and replaced as a whole. Not for
// models, whose weights stay where they are (model_file.h, file_output.h).
//
//   ASSIGN_OR_RETURN(std::string bytes, ReadWholeFile("input_0.pb"));
//   RETURN_IF_ERROR(WriteWholeFile("output_0.pb", bytes));
#ifndef ADDNORM_PROTO_WHOLE_FILE_H_
#define ADDNORM_PROTO_WHOLE_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/made_paths.h"

namespace addnorm::proto {

// A regular file. Errors name it.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

// The file appears under its name only when complete. An existing one is
// replaced, or refused with kFailedPrecondition.
absl::Status WriteWholeFile(const std::string& path, std::string_view bytes,
                            bool replace = true);

// A file that is not there yet, and goes again with `made`.
absl::Status WriteNewFile(const std::string& path, std::string_view bytes,
                          MadePaths& made);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_WHOLE_FILE_H_
