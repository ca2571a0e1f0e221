// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/constants.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "fmt/format.h"
#include "passes/operators.h"

namespace addnorm::passes {
namespace {

using ir::DataType;

template <typename T>
T Load(const std::string& bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Widening is exact, so that a comparison with 2, 1 or -0.5 is.
double WidenBFloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

double WidenFloat16(uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 0x1f) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

std::optional<double> Element(const ir::Tensor& tensor, size_t index) {
  const std::string& bytes = *tensor.inline_bytes();
  switch (tensor.type) {
    case DataType::kFloat:
      return Load<float>(bytes, index);
    case DataType::kDouble:
      return Load<double>(bytes, index);
    case DataType::kFloat16:
      return WidenFloat16(Load<uint16_t>(bytes, index));
    case DataType::kBFloat16:
      return WidenBFloat16(Load<uint16_t>(bytes, index));
    case DataType::kInt64:
      return static_cast<double>(Load<int64_t>(bytes, index));
    case DataType::kInt32:
      return Load<int32_t>(bytes, index);
    case DataType::kInt16:
      return Load<int16_t>(bytes, index);
    case DataType::kInt8:
      return Load<int8_t>(bytes, index);
    case DataType::kUint64:
      return static_cast<double>(Load<uint64_t>(bytes, index));
    case DataType::kUint32:
      return Load<uint32_t>(bytes, index);
    case DataType::kUint16:
      return Load<uint16_t>(bytes, index);
    case DataType::kUint8:
      return Load<uint8_t>(bytes, index);
    default:
      return std::nullopt;
  }
}

template <typename T>
std::string Bytes(const T* data, size_t count) {
  return std::string(reinterpret_cast<const char*>(data), count * sizeof(T));
}

ir::Tensor MakeTensor(DataType type, std::vector<int64_t> dims,
                      std::string bytes) {
  ir::Tensor tensor;
  tensor.type = type;
  tensor.dims = std::move(dims);
  tensor.elements = ir::InlineElements{std::move(bytes)};
  return tensor;
}

// The tensor of a Constant node in whichever attribute it has it.
std::optional<ir::Tensor> TensorOfConstantNode(const ir::Node& node) {
  if (node.attributes.size() != 1) return std::nullopt;
  const ir::Attribute& attribute = node.attributes[0];
  if (const auto* tensor = attribute.get<ir::Tensor>()) return *tensor;
  return NumbersOf(attribute);
}

bool IsOneOf(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool IsRandom(const ir::Node& node) {
  return node.op_type().starts_with("Random") ||
         IsOneOf(node.op_type(), {"Bernoulli", "Multinomial", "Dropout"});
}

// Bits of the significand, the hidden one included; 0: not a type that a
// number may be cast to and stay the same for our purposes.
int Precision(DataType type) {
  switch (type) {
    case DataType::kDouble:
      return 53;
    case DataType::kFloat:
      return 24;
    case DataType::kFloat16:
      return 11;
    case DataType::kBFloat16:
      return 8;
    case DataType::kInt32:
    case DataType::kInt64:
      return 31;
    default:
      return 0;
  }
}

double RoundToBits(double value, int bits) {
  int exponent = 0;
  const double significand = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(significand, bits)),
                    exponent - bits);
}

// As std::frexp has it: of the smallest normal number, and of the largest one.
int LeastExponent(DataType type) {
  if (type == DataType::kFloat16) return -13;
  return type == DataType::kDouble ? -1021 : -125;
}
int LargestExponent(DataType type) {
  if (type == DataType::kFloat16) return 16;
  return type == DataType::kDouble ? 1024 : 128;
}

// The number after the nodes between the root and the value.
std::optional<double> ScalarAfter(const std::vector<ir::Node*>& chain,
                                  std::optional<double> value) {
  for (auto node = chain.rbegin(); node != chain.rend() && value; ++node) {
    if (!(*node)->Is("", "Cast")) continue;
    const ir::Attribute* to = (*node)->attribute("to");
    const auto* type = to == nullptr ? nullptr : to->get<int64_t>();
    if (type == nullptr || !IsExactIn(*value, static_cast<DataType>(*type)))
      return std::nullopt;
  }
  return value;
}

}  // namespace

double RoundTo(double value, DataType type) {
  return ir::IsFloat(type) ? RoundToBits(value, Precision(type)) : value;
}

bool IsExactIn(double value, DataType type) {
  if (value == 0 || std::isinf(value) || std::isnan(value))
    return ir::IsFloat(type) || value == 0;
  if (type == DataType::kInt32 || type == DataType::kInt64)
    return std::nearbyint(value) == value && std::abs(value) < 0x1p31;
  const int bits = Precision(type);
  if (bits == 0) return false;
  // Bits that the type has for a number of this size: fewer below its smallest
  // normal number.
  int exponent = 0;
  std::frexp(value, &exponent);
  const int left = std::min(bits, exponent - LeastExponent(type) + bits);
  if (left < 1 || exponent > LargestExponent(type)) return false;
  return RoundToBits(value, left) == value;
}

bool IsConstantForwarding(const ir::Model& model, const ir::Node& node) {
  return IsStandardOp(model, node) && node.outputs().size() == 1 &&
         IsOneOf(node.op_type(), {"Cast", "CastLike", "Identity", "Reshape",
                                  "Squeeze", "Unsqueeze"});
}

std::optional<ir::Tensor> NumbersOf(const ir::Attribute& attribute) {
  if (const auto* value = attribute.get<float>()) {
    return MakeTensor(DataType::kFloat, {}, Bytes(value, 1));
  }
  if (const auto* value = attribute.get<int64_t>()) {
    return MakeTensor(DataType::kInt64, {}, Bytes(value, 1));
  }
  if (const auto* values = attribute.get<std::vector<float>>()) {
    return MakeTensor(DataType::kFloat, {static_cast<int64_t>(values->size())},
                      Bytes(values->data(), values->size()));
  }
  if (const auto* values = attribute.get<std::vector<int64_t>>()) {
    return MakeTensor(DataType::kInt64, {static_cast<int64_t>(values->size())},
                      Bytes(values->data(), values->size()));
  }
  return std::nullopt;
}

std::optional<double> Constant::root_scalar() const {
  if (tensor.element_count() != 1 || tensor.inline_bytes() == nullptr)
    return std::nullopt;
  return Element(tensor, 0);
}

std::optional<std::vector<int64_t>> Constant::integers() const {
  const bool is_wide = tensor.type == DataType::kInt64;
  if (!is_wide && tensor.type != DataType::kInt32) return std::nullopt;
  const std::string& bytes = *tensor.inline_bytes();
  std::vector<int64_t> values;
  for (size_t i = 0;
       i < static_cast<size_t>(tensor.element_count().value_or(0)); ++i) {
    values.push_back(is_wide ? Load<int64_t>(bytes, i)
                             : Load<int32_t>(bytes, i));
  }
  return values;
}

bool Constants::IsOverridable(const ir::Value* value) const {
  // Before IR 4 every initializer had to be listed as an input; callers could
  // not override it.
  return value->is_input() && model_.ir_version >= 4;
}

Resolution Constants::ReadTensor(const ir::Value* value,
                                 const ir::Tensor& tensor) {
  const auto count = tensor.element_count();
  if (!count || *count > kMaxElements) {
    return {std::nullopt,
            {},
            fmt::format("'{}' has more than one element", value->name())};
  }
  Constant constant{value, tensor, "", tensor.dims.size(), std::nullopt};
  if (tensor.inline_bytes() == nullptr) {
    if (model_.reader == nullptr) {
      return {std::nullopt,
              {},
              fmt::format("the elements of '{}' are not known", value->name())};
    }
    absl::StatusOr<std::string> bytes = model_.reader->Read(tensor);
    if (!bytes.ok()) {
      const absl::string_view message = bytes.status().message();
      return {std::nullopt, {}, std::string(message.data(), message.size())};
    }
    constant.tensor.elements = ir::InlineElements{*std::move(bytes)};
  }
  return {std::move(constant), {}, ""};
}

Resolution Constants::ResolveRoot(const ir::Value* value) {
  if (value->initializer() != nullptr) {
    if (IsOverridable(value)) {
      return {
          std::nullopt,
          {},
          fmt::format("'{}' can be overridden by the caller", value->name())};
    }
    return ReadTensor(value, *value->initializer());
  }
  const ir::Node* producer = value->producer();
  if (producer != nullptr && producer->Is("", "Constant")) {
    if (const auto tensor = TensorOfConstantNode(*producer))
      return ReadTensor(value, *tensor);
    if (const ir::Attribute* attribute = producer->attribute("value_float")) {
      if (producer->graph()->function() == nullptr) {
        return {std::nullopt,
                {},
                fmt::format("'{}' is an attribute of a function, and in none",
                            value->name())};
      }
      ir::Tensor unknown{"", DataType::kFloat, {}, ir::OpaqueElements{}};
      return {Constant{value, std::move(unknown), attribute->ref_attr_name, 0,
                       std::nullopt},
              {},
              ""};
    }
  }
  return {
      std::nullopt, {}, fmt::format("'{}' is not a constant", value->name())};
}

Resolution Constants::Resolve(const ir::Value* value) {
  std::vector<ir::Node*> chain;
  const ir::Value* root = value;
  while (root->producer() != nullptr &&
         IsConstantForwarding(model_, *root->producer()) &&
         root->producer()->input(0) != nullptr && chain.size() < kMaxChain) {
    chain.push_back(root->producer());
    root = root->producer()->input(0);
  }
  Resolution resolution = ResolveRoot(root);
  if (!resolution.constant) return resolution;
  resolution.constant->scalar =
      ScalarAfter(chain, resolution.constant->root_scalar());
  auto& rank = resolution.constant->rank;
  for (auto node = chain.rbegin(); node != chain.rend(); ++node) {
    if (IsOneOf((*node)->op_type(), {"Cast", "CastLike", "Identity"})) continue;
    const auto& shape = (*node)->output(0) == nullptr
                            ? std::nullopt
                            : (*node)->output(0)->type.shape;
    const auto dims = (*node)->Is("", "Reshape") && (*node)->input(1) != nullptr
                          ? ResolveRoot((*node)->input(1)).constant
                          : std::nullopt;
    rank = shape ? std::optional(shape->size()) : std::nullopt;
    if (dims && dims->integers()) rank = dims->integers()->size();
  }
  resolution.chain = std::move(chain);
  return resolution;
}

bool Constants::DependsOnInput(const ir::Value* value) {
  // Depth first without recursion: a chain can be as long as the graph.
  std::vector<const ir::Value*> stack{value};
  while (!stack.empty()) {
    const ir::Value* top = stack.back();
    if (depends_on_input_.contains(top)) {
      stack.pop_back();
      continue;
    }
    const ir::Node* node = top->producer();
    if (node == nullptr) {
      const bool fixed =
          (top->initializer() != nullptr && !IsOverridable(top)) ||
          top->is_sparse_initializer();
      depends_on_input_[top] = !fixed;
      continue;
    }
    bool depends = IsRandom(*node) || !node->subgraphs().empty();
    bool complete = true;
    for (const ir::Value* input : node->inputs()) {
      if (input == nullptr || depends) continue;
      const auto known = depends_on_input_.find(input);
      if (known == depends_on_input_.end()) {
        stack.push_back(input);
        complete = false;
      } else {
        depends = known->second;
      }
    }
    if (depends || complete) depends_on_input_[top] = depends;
  }
  return depends_on_input_.at(value);
}

}  // namespace addnorm::passes
