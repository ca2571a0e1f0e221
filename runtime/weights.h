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
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "passes/ir/model.h"
#include "runtime/tensor.h"

namespace addnorm::runtime {

// Equal weights of several models as one tensor. Where weights lie makes a run
// some percent faster or slower, so what is compared should read the same ones.
class WeightPool {
 public:
  // The first tensor with this type, these dims and bytes that it was given.
  Tensor Intern(Tensor weight);

 private:
  struct Hash {
    size_t operator()(const Tensor& weight) const;
  };
  struct Equal {
    bool operator()(const Tensor& a, const Tensor& b) const;
  };
  absl::flat_hash_set<Tensor, Hash, Equal> weights_;
};

class Weights {
 public:
  // All must outlive it; without a pool, weights are its own.
  Weights(const ir::Model& model, std::shared_ptr<MemoryMeter> meter,
          WeightPool* pool = nullptr)
      : model_(model), meter_(std::move(meter)), pool_(pool) {}

  // Its elements must not be written. Errors name the tensor and its file.
  absl::StatusOr<Tensor> Get(const ir::Tensor& tensor);

 private:
  const ir::Model& model_;
  std::shared_ptr<MemoryMeter> meter_;
  WeightPool* pool_;
  absl::flat_hash_map<const ir::Tensor*, Tensor> tensors_;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_WEIGHTS_H_
