// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/false_declarations.h"

#include "fmt/format.h"
#include "passes/ir/printable.h"

namespace addnorm::tool {
namespace {

using runtime::Tensor;

bool HasShape(const Tensor& tensor, const ir::Shape& declared) {
  const ir::Shape computed(tensor.dims().begin(), tensor.dims().end());
  return !ir::ProvablyDiffer(declared, computed);
}

}  // namespace

std::string ToText(const FalseDeclaration& declaration) {
  return fmt::format("{}: value '{}' is declared {}, computed is {}",
                     ir::Printable(declaration.value->producer()->Describe()),
                     ir::Printable(declaration.value->name()),
                     ir::Printable(declaration.declared), declaration.computed);
}

void FalseDeclarations::AfterNode(const runtime::Step& step,
                                  std::span<const Tensor> outputs) {
  const auto& values = step.node->outputs();
  for (size_t i = 0; i < std::min(values.size(), outputs.size()); ++i) {
    if (values[i] == nullptr || outputs[i].is_absent()) continue;
    const ir::TensorType& type = values[i]->type;
    const bool is_type = type.known() && type.element != outputs[i].type();
    if (!is_type && (!type.shape || HasShape(outputs[i], *type.shape)))
      continue;
    if (!seen_.insert(values[i]).second) continue;
    all_.push_back(
        {values[i], ir::ToString(type), Describe(outputs[i]), is_type});
  }
}

absl::Status FalseDeclarations::status() const {
  for (const FalseDeclaration& declaration : all_) {
    if (declaration.is_type)
      return absl::InvalidArgumentError(ToText(declaration));
  }
  return absl::OkStatus();
}

}  // namespace addnorm::tool
