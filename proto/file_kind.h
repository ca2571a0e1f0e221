// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What a file is that was given as a model, by its first bytes.
//
// It names common mistakes (a Git LFS pointer, a zip, another framework's file)
// in one line with the way out. It is a guess about files that are not models:
// a file it does not recognise may be none either. Ask only about what does not
// parse.
//
//   RETURN_IF_ERROR(CheckKind(fd, size));  // "is a Git LFS pointer, not a
//   model …"
#ifndef ADDNORM_PROTO_FILE_KIND_H_
#define ADDNORM_PROTO_FILE_KIND_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace addnorm::proto {

// The same for the first bytes of a file of that size.
absl::Status CheckKind(std::string_view head, uint64_t size);
absl::Status CheckKind(int fd, uint64_t size);

// True for "model.onnx.data" and the like, which hold weights of a model.
bool IsDataFileName(std::string_view path);

// No control characters but white space.
bool IsText(std::string_view head);

// A model as ONNX text: begins, past white space, with '<' or a '#' comment.
bool LooksLikeText(std::string_view head);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_FILE_KIND_H_
