// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/op.h"

#include <algorithm>

#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"

namespace addnorm::runtime {

OpContext::OpContext(const OpRow& row, const ir::Node& node,
                     Attributes attributes, int64_t opset,
                     std::vector<Tensor> inputs, size_t output_count,
                     RunResources& resources, SubgraphRunner* subgraphs)
    : row_(row),
      node_(node),
      attributes_(std::move(attributes)),
      opset_(opset),
      inputs_(std::move(inputs)),
      outputs_(output_count),
      resources_(resources),
      subgraphs_(subgraphs) {}

const Tensor& OpContext::input(size_t i) const {
  static const Tensor absent;
  return i < inputs_.size() ? inputs_[i] : absent;
}

absl::Status OpContext::RequireInputs(size_t count) const {
  for (size_t i = 0; i < count; ++i) {
    if (!has_input(i)) return Invalid("operand {} is missing", i);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> OpContext::Ints(size_t i) const {
  const Tensor& tensor = input(i);
  std::vector<int64_t> values(static_cast<size_t>(tensor.count()));
  RETURN_IF_ERROR((ForType<int64_t, int32_t>(tensor, [&]<typename T>() {
    std::copy_n(tensor.data<T>(), tensor.count(), values.begin());
  })));
  return values;
}

bool OpContext::wants_output(size_t i) const {
  return i < outputs_.size() && node_.output(i) != nullptr;
}

const Tensor* OpContext::Donor(size_t output, size_t bytes) const {
  for (const InPlace& pair : row_.in_place) {
    if (pair.output != static_cast<int>(output) || !has_input(pair.input))
      continue;
    const Tensor& donor = input(pair.input);
    // An operand that is given twice counts twice; an output made before may
    // have taken the buffer already.
    if (donor.byte_size() == bytes && donor.owns_buffer()) return &donor;
  }
  return nullptr;
}

absl::Status OpContext::OfOutput(size_t i, const absl::Status& status) const {
  const ir::Value* value = node_.output(i);
  if (value == nullptr) return status;
  return {status.code(),
          fmt::format("output '{}': {}", ir::Printable(value->name()),
                      std::string(status.message()))};
}

absl::StatusOr<Tensor*> OpContext::Output(size_t i, ir::DataType type,
                                          Dims dims) {
  if (i >= outputs_.size()) outputs_.resize(i + 1);
  const std::optional<int64_t> count = ElementCount(dims);
  const size_t bytes =
      static_cast<size_t>(count.value_or(0)) * ElementSize(type);
  if (const Tensor* donor = bytes == 0 ? nullptr : Donor(i, bytes)) {
    outputs_[i] = donor->WithType(type, std::move(dims));
    return &outputs_[i];
  }
  absl::StatusOr<Tensor> made =
      Tensor::Create(type, std::move(dims), resources_.meter);
  if (!made.ok()) return OfOutput(i, made.status());
  outputs_[i] = *std::move(made);
  return &outputs_[i];
}

void OpContext::SetOutput(size_t i, Tensor tensor) {
  if (i >= outputs_.size()) outputs_.resize(i + 1);
  outputs_[i] = std::move(tensor);
}

absl::StatusOr<Tensor> OpContext::Scratch(ir::DataType type, Dims dims) {
  return Tensor::Create(type, std::move(dims), resources_.meter);
}

absl::Status OpContext::UnsupportedType(ir::DataType type) const {
  return Unsupported("{} is not supported for elements of type {}",
                     node_.op_type(), ir::DataTypeName(type));
}

}  // namespace addnorm::runtime
