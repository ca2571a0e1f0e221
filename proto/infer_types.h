// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Types and shapes that the file does not state, by ONNX's own shape inference.
//
// Only unknown ones are filled in; what the file says is never changed.
// Inference runs on the skeleton of the file, so values of large tensors are
// not seen, and values in function bodies stay as they are. Its failures are
// not errors: the types it did not find stay unknown. Call it before passes
// edit the model.
//
//   InferTypes(*file, *imported.model).IgnoreError();
#ifndef ADDNORM_PROTO_INFER_TYPES_H_
#define ADDNORM_PROTO_INFER_TYPES_H_

#include "absl/status/status.h"
#include "passes/ir/model.h"
#include "proto/model_file.h"

namespace addnorm::proto {

// The status says why inference stopped, for diagnostics; ignoring it is fine.
absl::Status InferTypes(const ModelFile& file, ir::Model& model);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_INFER_TYPES_H_
