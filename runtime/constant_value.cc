// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/constant_value.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "runtime/element_types.h"

namespace addnorm::runtime {
namespace {

// Axes, exponents, epsilons: no constant of a norm has more elements than a
// tensor has axes.
constexpr int64_t kMaxElements = 64;
// Integers up to here are exact in a double.
constexpr int64_t kMaxExact = int64_t{1} << 53;

template <typename T>
bool Append(const Tensor& tensor, std::vector<double>& values) {
  if (tensor.type() != kTypeOf<T>) return false;
  for (const T element : tensor.elements<T>())
    values.push_back(static_cast<double>(Widen(element)));
  return true;
}

template <typename... Ts>
bool AppendAny(const Tensor& tensor, std::vector<double>& values) {
  return (Append<Ts>(tensor, values) || ...);
}

double RoundTo(ir::DataType type, double value) {
  const float single = static_cast<float>(value);
  switch (type) {
    case ir::DataType::kFloat:
      return static_cast<double>(single);
    case ir::DataType::kFloat16:
      return static_cast<double>(Widen(Narrow<Half>(single)));
    case ir::DataType::kBFloat16:
      return static_cast<double>(Widen(Narrow<BFloat16>(single)));
    default:
      return value;
  }
}

}  // namespace

std::optional<ConstantValue> ConstantValue::Of(const Tensor& tensor) {
  if (tensor.count() > kMaxElements) return std::nullopt;
  ConstantValue value;
  value.type_ = tensor.type();
  if (!AppendAny<float, double, Half, BFloat16, int64_t, int32_t>(
          tensor, value.values_))
    return std::nullopt;
  for (const double element : value.values_) {
    if (tensor.type() == ir::DataType::kInt64 &&
        std::abs(element) > static_cast<double>(kMaxExact))
      return std::nullopt;
  }
  return value;
}

std::optional<ConstantValue> ConstantValue::Of(const ir::Tensor& tensor) {
  const std::string* bytes = tensor.inline_bytes();
  if (bytes == nullptr) return std::nullopt;
  const absl::StatusOr<Tensor> elements =
      Tensor::FromBytes(tensor.type, tensor.dims, *bytes, nullptr);
  return elements.ok() ? Of(*elements) : std::nullopt;
}

std::optional<ConstantValue> ConstantValue::Of(const Attributes& attributes) {
  if (const ir::Tensor* tensor = attributes.Tensor("value")) return Of(*tensor);
  if (attributes.Has("value_float"))
    return Of(Tensor::Scalar(attributes.Float("value_float", 0)));
  if (attributes.Has("value_int"))
    return Of(Tensor::Scalar(attributes.Int("value_int", 0)));
  if (const auto ints = attributes.Ints("value_ints"))
    return Of(Tensor::Vector(*ints));
  if (const auto floats = attributes.Floats("value_floats"))
    return Of(Tensor::Vector(*floats));
  return std::nullopt;
}

std::optional<double> ConstantValue::scalar() const {
  if (values_.size() != 1) return std::nullopt;
  return values_[0];
}

std::vector<int64_t> ConstantValue::ints() const {
  std::vector<int64_t> ints;
  for (const double value : values_)
    ints.push_back(static_cast<int64_t>(std::clamp(value, -9e18, 9e18)));
  return ints;
}

std::optional<ConstantValue> ConstantValue::CastTo(ir::DataType type) const {
  const bool is_half =
      type == ir::DataType::kFloat16 || type == ir::DataType::kBFloat16;
  if (is_half && type_ == ir::DataType::kDouble) return std::nullopt;
  ConstantValue cast = *this;
  cast.type_ = type;
  for (double& value : cast.values_) value = RoundTo(type, value);
  return cast;
}

}  // namespace addnorm::runtime
