// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/fused_calls.h"

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "fmt/format.h"
#include "passes/ir/status_macros.h"
#include "runtime/fused_body.h"

namespace addnorm::runtime {

const OpRow kFusedRow = {
    "", "fused op", nullptr, {{1, 0}, {0, 1}, {1, 1}, {0, 0}}};

namespace {

// One attribute can change what a fused body computes.
bool HasOnlyEpsilon(const ir::Function& function) {
  return function.attribute_defaults.empty() &&
         std::all_of(function.attributes.begin(), function.attributes.end(),
                     [](const std::string& name) { return name == "epsilon"; });
}

std::string KeyOf(const ir::Function& function, const OpContext& call) {
  std::string key = fmt::format(
      "{} {} {:08x}", static_cast<const void*>(&function), call.input(0).rank(),
      std::bit_cast<uint32_t>(call.attributes().Float("epsilon", 0)));
  for (size_t i = 0; i < call.input_count(); ++i) {
    const Tensor& operand = call.input(i);
    key += fmt::format(" {}", static_cast<int>(operand.type()));
    // It may be epsilon, whose value counts.
    if (i >= 2 && operand.count() == 1) key += operand.ToBytes();
  }
  return key;
}

// One row for all rows, or one element.
bool IsScaleOfRows(const Tensor& scale, const Tensor& x) {
  if (scale.rank() > x.rank()) return false;
  if (scale.count() == 1) return true;
  return scale.rank() > 0 && scale.dims().back() == x.dims().back() &&
         scale.count() == x.dims().back();
}

bool TakesShapes(const OpContext& call, bool is_scaled) {
  const Tensor& a = call.input(0);
  if (a.rank() == 0 || a.count() == 0 || a.dims() != call.input(1).dims())
    return false;
  return !is_scaled || IsScaleOfRows(call.input(2), a);
}

}  // namespace

const std::optional<AddRmsNorm>& FusedCalls::Find(const ir::Function& function,
                                                  const OpContext& call) {
  const auto [it, added] = kernels_.try_emplace(KeyOf(function, call));
  if (!added || !HasOnlyEpsilon(function)) return it->second;
  std::vector<Tensor> operands;
  for (size_t i = 0; i < call.input_count(); ++i)
    operands.push_back(call.input(i));
  const auto recipe = TranslateBody(function, call.attributes(), operands);
  if (!recipe) return it->second;
  absl::StatusOr<AddRmsNorm> kernel = AddRmsNorm::Create(*recipe);
  if (kernel.ok()) it->second = *std::move(kernel);
  return it->second;
}

absl::StatusOr<bool> FusedCalls::Run(const ir::Function& function,
                                     OpContext& call) {
  if (call.input_count() < 2) return false;
  const std::optional<AddRmsNorm>& kernel = Find(function, call);
  if (!kernel) return false;
  const bool is_scaled = !kernel->recipe().scale_types.empty();
  if (!TakesShapes(call, is_scaled)) return false;
  const Tensor& a = call.input(0);
  const Dims dims = a.dims();
  AddRmsNormOperands operands;
  operands.length = dims.back();
  operands.rows = a.count() / dims.back();
  operands.a = a.data<std::byte>();
  operands.b = call.input(1).data<std::byte>();
  if (is_scaled) {
    operands.scale = call.input(2).data<std::byte>();
    operands.scale_count = call.input(2).count();
  }
  if (call.wants_output(1)) {
    ASSIGN_OR_RETURN(Tensor * sum, call.Output(1, a.type(), dims));
    operands.sum = sum->mutable_data<std::byte>();
  }
  ASSIGN_OR_RETURN(Tensor * y, call.Output(0, kernel->result_type(), dims));
  operands.y = y->mutable_data<std::byte>();
  RETURN_IF_ERROR(kernel->Run(operands, call.threads()));
  return true;
}

}  // namespace addnorm::runtime
