// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// From an edited IR back to the bytes of a model file.
//
// Only edits are written: nodes, initializers and value_info entries that
// passes erased go, nodes that they made or moved are put in place, and added
// opset imports, new functions and a raised ir_version are inserted. Every
// other byte is a range of the input. A model that no pass edited gives the
// input itself.
//
//   ASSIGN_OR_RETURN(Rope rope, Export(*file, *imported.model));
//   RETURN_IF_ERROR(WriteModel(*file, rope, "out.onnx", {}));
#ifndef ADDNORM_PROTO_EXPORT_H_
#define ADDNORM_PROTO_EXPORT_H_

#include "absl/status/statusor.h"
#include "passes/ir/model.h"
#include "proto/model_file.h"
#include "proto/rope.h"

namespace addnorm::proto {

// `file` is the one that the model was imported from.
absl::StatusOr<Rope> Export(const ModelFile& file, const ir::Model& model);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_EXPORT_H_
