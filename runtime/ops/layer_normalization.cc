// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// LayerNormalization, as the equations of ONNX's specification: the first stage
// in the type that stash_type names, the second in the elements' own, each
// operation of which is rounded.
#include <optional>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/element_types.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/expansion.h"
#include "runtime/ops/normalization.h"
#include "runtime/ops/row_moments.h"

namespace addnorm::runtime {
namespace {

struct LayerOperands {
  AxisSplit split;
  Tensor scale, bias;  // an element for each of a row; the bias may be absent
  float epsilon = 0;
};

absl::StatusOr<LayerOperands> OperandsOf(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  LayerOperands operands;
  ASSIGN_OR_RETURN(const int64_t axis,
                   NormalAxis(op.attributes().Int("axis", -1), x.rank()));
  ASSIGN_OR_RETURN(operands.split, FlattenAt(x.dims(), axis));
  operands.epsilon = op.attributes().Float("epsilon", 1e-5F);
  for (size_t i = 1; i <= 2; ++i) {
    if (!op.has_input(i)) continue;
    if (op.input(i).type() != x.type())
      return OpContext::Invalid("operand {} is {} for {}", i,
                                Describe(op.input(i)), Describe(x));
    const Dims row_dims(x.dims().begin() + axis, x.dims().end());
    ASSIGN_OR_RETURN((i == 1 ? operands.scale : operands.bias),
                     Expanded(op, op.input(i), row_dims));
  }
  return operands;
}

// From a row as S, which is overwritten.
template <typename S, typename T>
void NormaliseRow(const LayerOperands& operands, std::vector<S>& row, T* y,
                  S mean, S inverse) {
  const size_t n = row.size();
  for (S& value : row) value = (value - mean) * inverse;
  if constexpr (std::is_same_v<S, ComputeType<T>>) {
    RoundRow(row.data(), y, n);
  } else {
    for (size_t i = 0; i < n; ++i)
      y[i] = Rounded<T>(static_cast<ComputeType<T>>(row[i]));
  }
  BinaryRows(BinaryOp::kMultiply, y, operands.scale.data<T>(), y, n);
  if (!operands.bias.is_absent())
    BinaryRows(BinaryOp::kAdd, y, operands.bias.data<T>(), y, n);
}

template <typename T, typename S>
void LoadRow(const T* x, std::vector<S>& row) {
  if constexpr (std::is_same_v<S, ComputeType<T>>) {
    WidenRow(x, row.data(), row.size());
  } else {
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<S>(Widen(x[i]));
  }
}

// Mean (output 1) or InvStdDev (2), if wanted: one number a row.
template <typename S>
absl::StatusOr<S*> StatisticsOutput(OpContext& op, size_t output,
                                    int64_t axis) {
  if (!op.wants_output(output)) return nullptr;
  Dims dims = op.input(0).dims();
  std::fill(dims.begin() + axis, dims.end(), 1);
  ASSIGN_OR_RETURN(Tensor * tensor, op.Output(output, kTypeOf<S>, dims));
  return tensor->mutable_data<S>();
}

template <typename S, typename T>
absl::Status NormaliseLayers(OpContext& op) {
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const LayerOperands operands, OperandsOf(op));
  const AxisSplit& split = operands.split;
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), x.dims()));
  ASSIGN_OR_RETURN(S * means, StatisticsOutput<S>(op, 1, split.axis));
  ASSIGN_OR_RETURN(S * inverses, StatisticsOutput<S>(op, 2, split.axis));
  const bool is_row_wanted = means != nullptr || inverses != nullptr;
  if (x.count() == 0 && !is_row_wanted) return absl::OkStatus();
  op.threads().ParallelFor(
      split.outer, LineGrain(split.length), [&](int64_t begin, int64_t end) {
        std::vector<S> elements(static_cast<size_t>(split.length));
        for (int64_t row = begin; row < end; ++row) {
          LoadRow(x.data<T>() + row * split.length, elements);
          const auto moments = MomentsOf(elements.data(), split.length,
                                         static_cast<S>(operands.epsilon));
          const S inverse = S{1} / moments.deviation;
          if (means != nullptr) means[row] = Canonical(moments.mean);
          if (inverses != nullptr) inverses[row] = Canonical(inverse);
          NormaliseRow(operands, elements,
                       y->mutable_data<T>() + row * split.length, moments.mean,
                       inverse);
        }
      });
  return absl::OkStatus();
}

}  // namespace

absl::Status LayerNormalization(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const auto stash =
      static_cast<ir::DataType>(op.attributes().Int("stash_type", 1));
  return op.ForType<ADDNORM_FLOAT_TYPES>(
      op.input(0), [&]<typename T>() -> absl::Status {
        return op.ForType<float, double>(
            stash, [&]<typename S>() { return NormaliseLayers<S, T>(op); });
      });
}

}  // namespace addnorm::runtime
