// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/recipe_form.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "passes/ir/status_macros.h"
#include "runtime/kernels/scalar_steps.h"

namespace addnorm::runtime {
namespace {

using ir::DataType;

absl::Status CheckTypes(const RmsNormRecipe& recipe) {
  std::vector<DataType> types = {recipe.type, recipe.square_type};
  for (const ScalarStep& step : recipe.scalar_steps) {
    if (step.op == ScalarStep::Op::kCast) types.push_back(step.type);
  }
  for (const RowStep& step : recipe.row_steps) {
    if (step.op == RowStep::Op::kCast) types.push_back(step.type);
  }
  for (const auto* more : {&recipe.scale_types, &recipe.casts_before_square,
                           &recipe.casts_of_squares})
    types.insert(types.end(), more->begin(), more->end());
  for (const DataType type : types) {
    if (!ir::IsFloat(type)) {
      return absl::InvalidArgumentError(fmt::format(
          "a norm computes in float, double, float16 or bfloat16, not {}",
          ir::DataTypeName(type)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOperand(const char* name, DataType has, DataType row) {
  if (has == row) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the {} of a norm is {} where its row is {}", name,
                  ir::DataTypeName(has), ir::DataTypeName(row)));
}

bool ReadsFactor(RowStep::Op op) {
  return op != RowStep::Op::kTimesScale && op != RowStep::Op::kCast;
}

bool ReadsScale(RowStep::Op op) {
  return op == RowStep::Op::kTimesScale ||
         op == RowStep::Op::kTimesScaledFactor;
}

// One op on the elements, the type in which it computes, and the type to which
// its result is rounded: by itself, or by a Cast behind it, which is the same
// since half types compute in float.
struct RoundedOp {
  RowStep::Op op;
  DataType type, rounded;
};

// nullopt where values are rounded twice on the way, or an operand before.
std::optional<std::vector<RoundedOp>> RoundedOps(const RmsNormRecipe& recipe) {
  std::vector<RoundedOp> ops;
  DataType type = recipe.type;
  for (const RowStep& step : recipe.row_steps) {
    if (step.op != RowStep::Op::kCast) {
      ops.push_back({step.op, type, type});
      continue;
    }
    if ((type == DataType::kDouble) != (step.type == DataType::kDouble))
      return std::nullopt;
    type = step.type;
    if (IsExact(ops.empty() ? recipe.type : ops.back().rounded, type)) continue;
    if (ops.empty() || ops.back().rounded != DataType::kFloat)
      return std::nullopt;
    ops.back().rounded = type;
  }
  if (ops.empty() || ops.back().rounded != type) return std::nullopt;
  return ops;
}

}  // namespace

bool IsExact(DataType from, DataType to) {
  return from == to || to == DataType::kDouble ||
         (to == DataType::kFloat && from != DataType::kDouble);
}

absl::StatusOr<DataType> ResultType(const RmsNormRecipe& recipe) {
  RETURN_IF_ERROR(CheckTypes(recipe));
  const DataType factor = FactorType(recipe);
  const DataType scale = recipe.scale_types.empty() ? DataType::kUndefined
                                                    : recipe.scale_types.back();
  DataType row = recipe.type;
  for (const RowStep& step : recipe.row_steps) {
    if (step.op == RowStep::Op::kCast) row = step.type;
    if (ReadsFactor(step.op))
      RETURN_IF_ERROR(CheckOperand("factor", factor, row));
    if (ReadsScale(step.op)) RETURN_IF_ERROR(CheckOperand("scale", scale, row));
  }
  return row;
}

std::optional<SecondPassKey> SecondPassKeyOf(const RmsNormRecipe& recipe) {
  using Op = RowStep::Op;
  struct Row {
    std::vector<Op> ops;
    RowForm form;
  };
  static const auto& rows = *new std::vector<Row>{
      {{Op::kTimesFactor}, RowForm::kFactor},
      {{Op::kOverFactor}, RowForm::kOver},
      {{Op::kTimesFactor, Op::kTimesScale}, RowForm::kFactorScale},
      {{Op::kOverFactor, Op::kTimesScale}, RowForm::kOverScale},
      {{Op::kTimesScale, Op::kTimesFactor}, RowForm::kScaleFactor},
      {{Op::kTimesScaledFactor}, RowForm::kScaledFactor}};
  const auto rounded = RoundedOps(recipe);
  if (!rounded) return std::nullopt;
  std::vector<Op> ops;
  for (const RoundedOp& op : *rounded) ops.push_back(op.op);
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const Row& r) { return r.ops == ops; });
  if (row == rows.end()) return std::nullopt;
  const RoundedOp& first = rounded->front();
  const DataType result = rounded->back().rounded;
  DataType middle = first.rounded;
  if (row->form == RowForm::kScaledFactor) middle = first.type;
  return SecondPassKey{row->form, recipe.type, middle, result, result};
}

}  // namespace addnorm::runtime
