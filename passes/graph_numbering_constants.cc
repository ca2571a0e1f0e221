// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of GraphNumbering that knows constants, in whatever form.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/constants.h"
#include "passes/graph_numbering.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"

namespace addnorm::passes {
namespace {

// The number of a constant of one floating-point element; a NaN is more than a
// number.
std::optional<double> NumberOf(const ir::Tensor& tensor) {
  if (!ir::IsFloat(tensor.type)) return std::nullopt;
  Constant constant;
  constant.tensor = tensor;
  const std::optional<double> number = constant.root_scalar();
  return number && *number == *number ? number : std::nullopt;
}

}  // namespace

absl::Status GraphNumbering::AddInitializers(const ir::Graph& graph) {
  for (const ir::Value* value : graph.values()) {
    // One that is an input too is what the caller says.
    if (value->is_input() &&
        (!numbering_.options_.inputs_keep_defaults || &graph != &model_.graph))
      continue;
    if (value->sparse_initializer() != nullptr) {
      ASSIGN_OR_RETURN(const Number number,
                       NumberSparse(*value->sparse_initializer(), value));
      Set(value, number);
    }
    if (value->initializer() != nullptr) {
      ASSIGN_OR_RETURN(const Number number,
                       NumberTensor(*value->initializer(), value));
      Set(value, number);
    }
  }
  return absl::OkStatus();
}

// Small constants count by their elements; of large ones the contents tell.
absl::StatusOr<Number> GraphNumbering::NumberTensor(const ir::Tensor& tensor,
                                                    const ir::Value* value) {
  if (const auto* opaque = std::get_if<ir::OpaqueElements>(&tensor.elements))
    return NumberOpaque(tensor, *opaque, value);
  const std::optional<int64_t> count = tensor.element_count();
  if (count && *count <= Constants::kMaxElements) {
    ir::Tensor small = tensor;
    if (small.inline_bytes() == nullptr) {
      if (model_.reader == nullptr)
        return absl::UnimplementedError("a constant cannot be read");
      ASSIGN_OR_RETURN(std::string bytes, model_.reader->Read(tensor));
      small.elements = ir::InlineElements{std::move(bytes)};
    }
    return InternSmall(small, value);
  }
  return NumberByContents(tensor, value);
}

absl::StatusOr<Number> GraphNumbering::NumberByContents(
    const ir::Tensor& tensor, const ir::Value* value) {
  ASSIGN_OR_RETURN(const int32_t contents,
                   numbering_.contents_.Classify(side_, tensor));
  Expression expression;
  expression.label = fmt::format("weight {}[{}]", ir::DataTypeName(tensor.type),
                                 fmt::join(tensor.dims, ","));
  expression.values[side_] = value;
  std::string key =
      fmt::format("weight {} [{}] {}", static_cast<int>(tensor.type),
                  fmt::join(tensor.dims, ","), contents);
  const Number number =
      numbering_.Intern(std::move(key), std::move(expression));
  numbering_.least_ranks_[number] = tensor.dims.size();
  return number;
}

Number GraphNumbering::InternSmall(const ir::Tensor& tensor,
                                   const ir::Value* value) {
  return numbering_.InternConstant(
      {tensor.type, tensor.dims, *tensor.inline_bytes(), NumberOf(tensor)},
      value, side_);
}

// Elements that nobody interprets: by the bytes that they are encoded in.
absl::StatusOr<Number> GraphNumbering::NumberOpaque(
    const ir::Tensor& tensor, const ir::OpaqueElements& elements,
    const ir::Value* value) {
  if (!elements.ranges.empty()) return NumberByContents(tensor, value);
  if (!elements.encoded) {
    return absl::UnimplementedError(fmt::format(
        "'{}' is of a kind that is not compared", ir::Printable(tensor.name)));
  }
  const std::string type = fmt::format("{}[{}]", ir::DataTypeName(tensor.type),
                                       fmt::join(tensor.dims, ","));
  Expression expression;
  expression.label = fmt::format("constant {}", type);
  expression.values[side_] = value;
  return numbering_.Intern(fmt::format("opaque {} {}", type, *elements.encoded),
                           std::move(expression));
}

absl::StatusOr<Number> GraphNumbering::NumberSparse(
    const ir::SparseTensor& sparse, const ir::Value* value) {
  ASSIGN_OR_RETURN(const Number values, NumberTensor(sparse.values, nullptr));
  ASSIGN_OR_RETURN(const Number indices, NumberTensor(sparse.indices, nullptr));
  Expression expression;
  expression.label =
      fmt::format("sparse constant [{}]", fmt::join(sparse.dims, ","));
  expression.operands = {values, indices};
  expression.values[side_] = value;
  std::string key =
      fmt::format("{} ({},{})", expression.label, values, indices);
  return numbering_.Intern(std::move(key), std::move(expression));
}

// A Constant node as the tensor that it is.
absl::StatusOr<Number> GraphNumbering::NumberConstant(const ir::Node& node) {
  const ir::Value* value = node.output(0);
  for (const ir::Attribute& written : node.attributes) {
    const ir::Attribute* attribute = Resolve(written);
    if (attribute == nullptr) continue;
    if (const auto* tensor = attribute->get<ir::Tensor>())
      return NumberTensor(*tensor, value);
    if (const std::optional<ir::Tensor> numbers = NumbersOf(*attribute))
      return InternSmall(*numbers, value);
  }
  return kAbsent;
}

// True if the node's result has the number of its operand, or is a small
// constant in another form.
absl::StatusOr<bool> GraphNumbering::NumberForwarded(
    const ir::Node& node, const std::vector<Number>& operands) {
  if (!node.domain().empty() || operands.empty() || node.output(0) == nullptr)
    return false;
  if (node.op_type() == "Identity") {
    Set(node.output(0), operands[0]);
    return true;
  }
  const ValueNumbering::SmallConstant* constant =
      numbering_.FindConstant(operands[0]);
  if (constant == nullptr || node.op_type() != "Cast") return false;
  const ir::Attribute* written = node.attribute("to");
  const ir::Attribute* to = written == nullptr ? nullptr : Resolve(*written);
  const auto* type = to == nullptr ? nullptr : to->get<int64_t>();
  if (type == nullptr) return false;
  const auto target = static_cast<ir::DataType>(*type);
  if (!constant->number || !ir::IsFloat(target) ||
      !IsExactIn(*constant->number, target))
    return false;
  Set(node.output(0),
      numbering_.InternConstant(
          {target, constant->dims, /*bytes=*/"", constant->number},
          node.output(0), side_));
  return true;
}

}  // namespace addnorm::passes
