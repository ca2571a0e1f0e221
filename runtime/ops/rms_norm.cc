// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// RMSNormalization, ONNX Runtime's SimplifiedLayerNormalization, and its
// variants that add a residual first (skip_norm.h). Roundings:
// kernels/norm_recipes.h.
#include <algorithm>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/kernels/add_rms_norm.h"
#include "runtime/kernels/norm_recipes.h"
#include "runtime/ops/expansion.h"
#include "runtime/ops/groups.h"
#include "runtime/ops/skip_norm.h"

namespace addnorm::runtime {
namespace {

// x as rows, over each of which it is normalised.
struct Rows {
  int64_t count = 0, length = 0;
  Dims row_dims = {};     // of one row: x's from the axis on
  Dims factor_dims = {};  // of one number a row: x's, with 1 from the axis on
};

absl::StatusOr<Rows> RowsFrom(const Tensor& x, int64_t axis) {
  const int64_t from = axis < 0 ? axis + x.rank() : axis;
  if (from < 0 || from >= x.rank()) {
    return OpContext::Invalid("axis {} is out of range for {}", axis,
                              Describe(x));
  }
  Rows rows = {.factor_dims = x.dims()};
  rows.row_dims.assign(x.dims().begin() + from, x.dims().end());
  std::fill(rows.factor_dims.begin() + from, rows.factor_dims.end(), 1);
  // Neither overflows: an empty tensor may have huge other dims.
  if (x.count() > 0) {
    rows.length = *ElementCount(rows.row_dims);
    rows.count = x.count() / rows.length;
  }
  return rows;
}

// ---- RMSNormalization's scale, which may be of any shape that broadcasts

// The scale as one element, as one row for all, or else as large as x.
absl::StatusOr<Tensor> ScaleRows(OpContext& op, const Tensor& x,
                                 const Tensor& scale, const Rows& rows) {
  if (scale.count() == 1 && scale.rank() <= x.rank()) return scale;
  if (scale.dims() == rows.row_dims) return scale;
  const auto row_rank = static_cast<int64_t>(rows.row_dims.size());
  bool differs = false;
  for (int64_t d = 0; d < scale.rank() - row_rank; ++d)
    differs |= scale.dims()[d] != 1;
  return Expanded(op, scale, differs ? x.dims() : rows.row_dims);
}

// A call for each row, where each has a scale of its own.
absl::Status RunRowByRow(const AddRmsNorm& norm,
                         const AddRmsNormOperands& operands, size_t x_size,
                         size_t y_size, size_t scale_size,
                         ThreadPool& threads) {
  for (int64_t row = 0; row < operands.rows; ++row) {
    const auto offset = static_cast<size_t>(row * operands.length);
    AddRmsNormOperands one = operands;
    one.rows = 1;
    one.scale_count = operands.length;
    one.a = static_cast<const std::byte*>(operands.a) + offset * x_size;
    one.scale =
        static_cast<const std::byte*>(operands.scale) + offset * scale_size;
    one.y = static_cast<std::byte*>(operands.y) + offset * y_size;
    if (one.factors != nullptr) one.factors += row;
    RETURN_IF_ERROR(norm.Run(one, threads));
  }
  return absl::OkStatus();
}

// Operands 0 and 1 (x and scale) and the attributes axis and epsilon, with
// y as output 0. factors: one number a row, or nullptr.
absl::Status Normalise(OpContext& op, const RmsNormRecipe& recipe,
                       const Rows& rows, double* factors) {
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const Tensor scale, ScaleRows(op, x, op.input(1), rows));
  ASSIGN_OR_RETURN(const AddRmsNorm norm, AddRmsNorm::Create(recipe));
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, norm.result_type(), x.dims()));
  if (x.count() == 0) return absl::OkStatus();
  const AddRmsNormOperands operands = {
      .rows = rows.count,
      .length = rows.length,
      .a = x.data<std::byte>(),
      .scale = scale.data<std::byte>(),
      .scale_count = scale.count(),
      .epsilon = static_cast<double>(op.attributes().Float("epsilon", 1e-5f)),
      .y = y->mutable_data<std::byte>(),
      .factors = factors};
  const bool is_row_by_row = scale.count() != 1 && scale.count() != rows.length;
  if (!is_row_by_row) return norm.Run(operands, op.threads());
  return RunRowByRow(norm, operands, ElementSize(x.type()),
                     ElementSize(y->type()), ElementSize(scale.type()),
                     op.threads());
}

absl::Status CheckTypes(const OpContext& op, ir::DataType stash) {
  for (const ir::DataType type :
       {op.input(0).type(), op.input(1).type(), stash})
    if (!ir::IsFloat(type)) return op.UnsupportedType(type);
  return absl::OkStatus();
}

absl::Status RmsNormalization(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const auto stash =
      static_cast<ir::DataType>(op.attributes().Int("stash_type", 1));
  RETURN_IF_ERROR(CheckTypes(op, stash));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const Rows rows,
                   RowsFrom(x, op.attributes().Int("axis", -1)));
  return Normalise(op,
                   RmsNormalizationRecipe(x.type(), op.input(1).type(), stash),
                   rows, nullptr);
}

// Output 1 is 1 / rms of each row, as float.
absl::Status SimplifiedLayerNormalization(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  RETURN_IF_ERROR(CheckTypes(op, ir::DataType::kFloat));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const Rows rows,
                   RowsFrom(x, op.attributes().Int("axis", -1)));
  std::vector<double> rms;
  if (op.wants_output(1)) rms.resize(static_cast<size_t>(rows.count));
  RETURN_IF_ERROR(Normalise(
      op, SimplifiedLayerNormalizationRecipe(x.type(), op.input(1).type()),
      rows, rms.empty() ? nullptr : rms.data()));
  if (!op.wants_output(1)) return absl::OkStatus();
  ASSIGN_OR_RETURN(Tensor * inverse,
                   op.Output(1, ir::DataType::kFloat, rows.factor_dims));
  std::transform(rms.begin(), rms.end(), inverse->mutable_data<float>(),
                 [](double v) { return Canonical(static_cast<float>(1 / v)); });
  return absl::OkStatus();
}

constexpr OpRow kRows[] = {
    {"", "RMSNormalization", RmsNormalization, {{0, 0}}},
    {"",
     "SimplifiedLayerNormalization",
     SimplifiedLayerNormalization,
     {{0, 0}}},
    {"com.microsoft",
     "SimplifiedLayerNormalization",
     SimplifiedLayerNormalization,
     {{0, 0}}},
    {"com.microsoft",
     "SkipLayerNormalization",
     SkipLayerNormalization,
     {{0, 0}, {3, 1}}},
    {"com.microsoft",
     "SkipSimplifiedLayerNormalization",
     SkipSimplifiedLayerNormalization,
     {{0, 0}, {3, 1}}},
};

}  // namespace

OpTable RmsNormOps() { return kRows; }

}  // namespace addnorm::runtime
