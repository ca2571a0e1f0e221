// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Some nodes of a model as a model file of their own, with the functions that
// they call and what the caller says of their inputs, constants and outputs.
//
//   ASSIGN_OR_RETURN(std::string bytes, SerializePart(*file, part));
#ifndef ADDNORM_PROTO_MODEL_PART_H_
#define ADDNORM_PROTO_MODEL_PART_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "passes/ir/model.h"
#include "proto/model_file.h"

namespace addnorm::proto {

struct ModelPart {
  const ir::Model* model = nullptr;
  std::vector<const ir::Node*> nodes;  // in an order in which they can run
  // Name, type and dims.
  std::vector<ir::Tensor> inputs, outputs;
  std::vector<ir::Tensor> initializers;  // inline
  // Values that are called otherwise than in the model, in nodes and in graphs
  // that capture them. No value beside them may have such a name.
  absl::flat_hash_map<const ir::Value*, std::string> names;
};

// The nodes, with their graphs, and the functions are copied from the file.
absl::StatusOr<std::string> SerializePart(const ModelFile& file,
                                          const ModelPart& part);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_MODEL_PART_H_
