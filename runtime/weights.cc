// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/weights.h"

#include <utility>

#include "passes/ir/status_macros.h"

namespace addnorm::runtime {

absl::StatusOr<Tensor> Weights::Get(const ir::Tensor& tensor) {
  const auto it = tensors_.find(&tensor);
  if (it != tensors_.end()) return it->second;
  std::string bytes;
  if (const std::string* inline_bytes = tensor.inline_bytes()) {
    bytes = *inline_bytes;
  } else if (model_.reader == nullptr) {
    return absl::UnimplementedError("the model has no file to read it from");
  } else {
    ASSIGN_OR_RETURN(bytes, model_.reader->Read(tensor));
  }
  ASSIGN_OR_RETURN(Tensor weight, Tensor::FromBytes(tensor.type, tensor.dims,
                                                    std::move(bytes), meter_));
  return tensors_.emplace(&tensor, std::move(weight)).first->second;
}

}  // namespace addnorm::runtime
