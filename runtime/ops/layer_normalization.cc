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
#include "runtime/ops/axis_split.h"
#include "runtime/ops/normalization.h"
#include "runtime/ops/row_moments.h"

namespace addnorm::runtime {
namespace {

// The dims of a tensor that broadcasts to `to`, padded with ones in front.
absl::StatusOr<Dims> PaddedDims(const Tensor& tensor, const Dims& to) {
  Dims dims = tensor.dims();
  while (dims.size() > to.size() && dims.front() == 1) dims.erase(dims.begin());
  bool fits = dims.size() <= to.size();
  if (fits) dims.insert(dims.begin(), to.size() - dims.size(), 1);
  for (size_t i = 0; fits && i < to.size(); ++i)
    fits = dims[i] == 1 || dims[i] == to[i];
  if (fits) return dims;
  return OpContext::Invalid("{} does not broadcast to the row {}",
                            Describe(tensor), ToString(to));
}

// A scale or bias for each element of a row, widened.
template <typename T>
absl::StatusOr<std::vector<ComputeType<T>>> RowOperand(const Tensor& tensor,
                                                       const Dims& row_dims,
                                                       int64_t length) {
  ASSIGN_OR_RETURN(const Dims dims, PaddedDims(tensor, row_dims));
  std::vector<ComputeType<T>> values(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    int64_t from = 0, stride = 1, rest = i;
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (dims[axis] != 1) from += rest % row_dims[axis] * stride;
      rest /= row_dims[axis];
      stride *= dims[axis];
    }
    values[i] = Widen(tensor.data<T>()[from]);
  }
  return values;
}

template <typename T>
struct LayerOperands {
  AxisSplit split;
  std::vector<ComputeType<T>> scale, bias;  // no bias: empty
  float epsilon = 0;
};

template <typename T>
absl::StatusOr<LayerOperands<T>> OperandsOf(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  LayerOperands<T> operands;
  ASSIGN_OR_RETURN(const int64_t axis,
                   PositiveAxis(op.attributes().Int("axis", -1), x.rank()));
  ASSIGN_OR_RETURN(operands.split, FlattenAt(x.dims(), axis));
  operands.epsilon = op.attributes().Float("epsilon", 1e-5F);
  for (size_t i = 1; i <= 2; ++i) {
    if (!op.has_input(i)) continue;
    if (op.input(i).type() != x.type())
      return OpContext::Invalid("operand {} is {} for {}", i,
                                Describe(op.input(i)), Describe(x));
    const Dims row_dims(x.dims().begin() + axis, x.dims().end());
    ASSIGN_OR_RETURN(
        (i == 1 ? operands.scale : operands.bias),
        RowOperand<T>(op.input(i), row_dims, operands.split.length));
  }
  return operands;
}

template <typename S, typename T>
void NormaliseRow(const LayerOperands<T>& operands, const T* x, T* y, S mean,
                  S inverse) {
  for (int64_t i = 0; i < operands.split.length; ++i) {
    const S distance = static_cast<S>(Widen(x[i])) - mean;
    const T normalised =
        Rounded<T>(static_cast<ComputeType<T>>(distance * inverse));
    const T scaled = Rounded<T>(Widen(normalised) * operands.scale[i]);
    y[i] = operands.bias.empty() ? scaled
                                 : Rounded<T>(Widen(scaled) + operands.bias[i]);
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
  ASSIGN_OR_RETURN(const LayerOperands<T> operands, OperandsOf<T>(op));
  const AxisSplit& split = operands.split;
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), x.dims()));
  ASSIGN_OR_RETURN(S * means, StatisticsOutput<S>(op, 1, split.axis));
  ASSIGN_OR_RETURN(S * inverses, StatisticsOutput<S>(op, 2, split.axis));
  const bool is_row_wanted = means != nullptr || inverses != nullptr;
  if (x.count() == 0 && !is_row_wanted) return absl::OkStatus();
  op.threads().ParallelFor(
      split.outer, LineGrain(split.length), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* from = x.data<T>() + row * split.length;
          const auto moments = MomentsOf<S>(from, split.length,
                                            static_cast<S>(operands.epsilon));
          const S inverse = S{1} / moments.deviation;
          if (means != nullptr) means[row] = Canonical(moments.mean);
          if (inverses != nullptr) inverses[row] = Canonical(inverse);
          NormaliseRow(operands, from,
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
