// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What passes made, as fields of a model file: tag, length and message.
//
// Only new things are serialised; what came from the file stays bytes of the
// file. Graphs in attributes of new nodes and tensors that are not inline are
// Internal errors: no pass makes them.
//
//   ASSIGN_OR_RETURN(std::string bytes, NodeField(file, node,
//   kGraphNodeField));
#ifndef ADDNORM_PROTO_SERIALIZE_H_
#define ADDNORM_PROTO_SERIALIZE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "passes/ir/model.h"
#include "proto/model_file.h"

namespace addnorm::proto {

// Takes doc string, metadata and unknown fields over from node.inherits_from.
absl::StatusOr<std::string> NodeField(const ModelFile& file,
                                      const ir::Node& node, int field);
absl::StatusOr<std::string> FunctionField(const ir::Function& function);
std::string OpsetImportField(const ir::OpsetImport& import, int field);
std::string IrVersionField(int64_t version);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_SERIALIZE_H_
