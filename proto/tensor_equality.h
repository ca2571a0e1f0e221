// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Are the elements of two constants, or two whole files, the same? Without
// reading them where both are the same bytes of one file; else block by block,
// so that memory does not depend on their size.
//
//   ASSIGN_OR_RETURN(bool equal, ElementsEqual(*file_a, x, *file_b, y));
#ifndef ADDNORM_PROTO_TENSOR_EQUALITY_H_
#define ADDNORM_PROTO_TENSOR_EQUALITY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "passes/ir/tensor.h"
#include "proto/model_file.h"

namespace addnorm::proto {

// Where a tensor's bytes are: equal texts are the same bytes of one file.
// nullopt for elements in memory, or not in one piece.
absl::StatusOr<std::optional<std::string>> PlaceOfElements(
    const ModelFile& file, const ir::Tensor& tensor);

// Tensors of the same type and dims. Errors are those of reading.
absl::StatusOr<bool> ElementsEqual(const ModelFile& file_a, const ir::Tensor& a,
                                   const ModelFile& file_b,
                                   const ir::Tensor& b);

// The same bytes, also of the data files that tensors refer to: one model.
absl::StatusOr<bool> FilesEqual(const ModelFile& a, const ModelFile& b);

// Equal elements have equal digests; in one process, and likely only they.
absl::StatusOr<uint64_t> DigestOfElements(const ModelFile& file,
                                          const ir::Tensor& tensor);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_TENSOR_EQUALITY_H_
