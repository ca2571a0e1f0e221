// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/attributes.h"

#include <variant>

#include "fmt/format.h"
#include "passes/ir/model.h"

namespace addnorm::runtime {

const ir::AttributeValue* Attributes::Find(std::string_view name) const {
  const ir::Attribute* attribute = node_->attribute(name);
  if (attribute == nullptr) return nullptr;
  const std::string& reference = attribute->ref_attr_name;
  if (reference.empty()) return &attribute->value;
  const ir::AttributeValue* given =
      caller_ == nullptr ? nullptr : caller_->Find(reference);
  if (given != nullptr) return given;
  const ir::Function* function = node_->graph()->function();
  const ir::Attribute* fallback =
      function == nullptr ? nullptr : function->FindDefault(reference);
  return fallback == nullptr ? nullptr : &fallback->value;
}

template <typename T>
const T* Attributes::Get(std::string_view name) const {
  const ir::AttributeValue* value = Find(name);
  if (value == nullptr) return nullptr;
  const T* held = std::get_if<T>(value);
  if (held == nullptr) {
    status_ = absl::InvalidArgumentError(
        fmt::format("attribute '{}' has another type than expected", name));
  }
  return held;
}

int64_t Attributes::Int(std::string_view name, int64_t fallback) const {
  const int64_t* value = Get<int64_t>(name);
  return value == nullptr ? fallback : *value;
}

float Attributes::Float(std::string_view name, float fallback) const {
  const float* value = Get<float>(name);
  return value == nullptr ? fallback : *value;
}

std::string Attributes::String(std::string_view name,
                               std::string_view fallback) const {
  const std::string* value = Get<std::string>(name);
  return value == nullptr ? std::string(fallback) : *value;
}

std::optional<std::vector<int64_t>> Attributes::Ints(
    std::string_view name) const {
  const auto* value = Get<std::vector<int64_t>>(name);
  if (value == nullptr) return std::nullopt;
  return *value;
}

std::optional<std::vector<float>> Attributes::Floats(
    std::string_view name) const {
  const auto* value = Get<std::vector<float>>(name);
  if (value == nullptr) return std::nullopt;
  return *value;
}

const ir::Tensor* Attributes::Tensor(std::string_view name) const {
  return Get<ir::Tensor>(name);
}

}  // namespace addnorm::runtime
