// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/unmodelled_tensors.h"

#include "passes/ir/status_macros.h"
#include "proto/tensor_data.h"

namespace addnorm::proto {
namespace {

// Recursion is bounded by protobuf's own limit of nesting.
class Checker {
 public:
  explicit Checker(const ModelFile& file) : file_(file) {}

  absl::Status Check(const onnx::GraphProto& graph) {
    for (const auto& tensor : graph.initializer())
      RETURN_IF_ERROR(CheckExternal(file_, tensor));
    for (const auto& sparse : graph.sparse_initializer())
      RETURN_IF_ERROR(Check(sparse));
    for (const auto& node : graph.node()) {
      for (const auto& attribute : node.attribute())
        RETURN_IF_ERROR(Check(attribute));
    }
    return absl::OkStatus();
  }

  absl::Status Check(const onnx::AttributeProto& attribute) {
    RETURN_IF_ERROR(CheckExternal(file_, attribute.t()));
    for (const auto& tensor : attribute.tensors())
      RETURN_IF_ERROR(CheckExternal(file_, tensor));
    RETURN_IF_ERROR(Check(attribute.sparse_tensor()));
    for (const auto& sparse : attribute.sparse_tensors())
      RETURN_IF_ERROR(Check(sparse));
    if (attribute.has_g()) RETURN_IF_ERROR(Check(attribute.g()));
    for (const auto& graph : attribute.graphs()) RETURN_IF_ERROR(Check(graph));
    return absl::OkStatus();
  }

 private:
  absl::Status Check(const onnx::SparseTensorProto& sparse) {
    RETURN_IF_ERROR(CheckExternal(file_, sparse.values()));
    return CheckExternal(file_, sparse.indices());
  }

  const ModelFile& file_;
};

}  // namespace

absl::Status CheckUnmodelledTensors(const ModelFile& file,
                                    const onnx::ModelProto& model) {
  Checker checker(file);
  for (const auto& training : model.training_info()) {
    RETURN_IF_ERROR(checker.Check(training.initialization()));
    RETURN_IF_ERROR(checker.Check(training.algorithm()));
  }
  for (const auto& function : model.functions()) {
    for (const auto& attribute : function.attribute_proto())
      RETURN_IF_ERROR(checker.Check(attribute));
  }
  return absl::OkStatus();
}

}  // namespace addnorm::proto
