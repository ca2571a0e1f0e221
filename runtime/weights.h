// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The constants of a model as runtime tensors: read when first needed, kept
// once, shared by every run.
//
//   ASSIGN_OR_RETURN(Tensor weight, weights.Get(*value->initializer()));
#ifndef ADDNORM_RUNTIME_WEIGHTS_H_
#define ADDNORM_RUNTIME_WEIGHTS_H_

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "passes/ir/model.h"
#include "runtime/tensor.h"

namespace addnorm::runtime {

class Weights {
 public:
  // Both must outlive it.
  Weights(const ir::Model& model, std::shared_ptr<MemoryMeter> meter)
      : model_(model), meter_(std::move(meter)) {}

  // Its elements must not be written. Errors name the tensor and its file.
  absl::StatusOr<Tensor> Get(const ir::Tensor& tensor);

 private:
  const ir::Model& model_;
  std::shared_ptr<MemoryMeter> meter_;
  absl::flat_hash_map<const ir::Tensor*, Tensor> tensors_;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_WEIGHTS_H_
