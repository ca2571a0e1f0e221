// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/weights.h"

#include <string_view>
#include <utility>

#include "absl/hash/hash.h"
#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "runtime/memory_bound.h"

namespace addnorm::runtime {
namespace {

// Before it is read; that dims and the file agree is known since the import.
absl::Status CheckRoom(const ir::Tensor& tensor) {
  const size_t bytes = static_cast<size_t>(tensor.element_count().value_or(0)) *
                       ElementSize(tensor.type);
  const absl::Status room = MemoryBound::OfProcess().CheckRoom(bytes);
  if (room.ok()) return room;
  return {room.code(),
          fmt::format("no memory for the weight '{}': {}",
                      ir::Printable(tensor.name), std::string(room.message()))};
}

std::string_view BytesOf(const Tensor& tensor) {
  return {tensor.data<char>(), tensor.byte_size()};
}

}  // namespace

size_t WeightPool::Hash::operator()(const Tensor& weight) const {
  return absl::HashOf(weight.type(), weight.dims(), BytesOf(weight));
}

bool WeightPool::Equal::operator()(const Tensor& a, const Tensor& b) const {
  return a.type() == b.type() && a.dims() == b.dims() &&
         BytesOf(a) == BytesOf(b);
}

Tensor WeightPool::Intern(Tensor weight) {
  return *weights_.insert(std::move(weight)).first;
}

absl::StatusOr<Tensor> Weights::Get(const ir::Tensor& tensor) {
  const auto it = tensors_.find(&tensor);
  if (it != tensors_.end()) return it->second;
  RETURN_IF_ERROR(CheckRoom(tensor));
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
  if (pool_ != nullptr) weight = pool_->Intern(std::move(weight));
  return tensors_.emplace(&tensor, std::move(weight)).first->second;
}

}  // namespace addnorm::runtime
