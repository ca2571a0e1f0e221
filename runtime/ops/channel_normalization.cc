// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Normalisations with a scale and a bias for each channel of [N, C, …]:
//   y = (x - mean) / sqrt(variance + epsilon) * scale + bias
// over groups of channels (GroupNormalization), single channels
// (InstanceNormalization), or with given statistics (BatchNormalization, for
// inference only). All in the type that the elements compute in, rounded once.
#include <cmath>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/element_types.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/normalization.h"
#include "runtime/ops/row_moments.h"

namespace addnorm::runtime {
namespace {

// [N, C, …] with its channels in the middle.
absl::StatusOr<AxisSplit> ChannelsOf(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(3));
  const Tensor& x = op.input(0);
  if (x.rank() < 2)
    return OpContext::Invalid("{} has no channels", Describe(x));
  return SplitAt(x.dims(), 1);
}

// Operand i, `count` numbers of any floating-point type.
template <typename A>
absl::StatusOr<std::vector<A>> Numbers(const OpContext& op, size_t i,
                                       int64_t count) {
  const Tensor& tensor = op.input(i);
  if (tensor.count() != count)
    return OpContext::Invalid("operand {} is {}, expected {} numbers", i,
                              Describe(tensor), count);
  std::vector<A> values;
  RETURN_IF_ERROR((op.ForType<ADDNORM_FLOAT_TYPES>(tensor, [&]<typename T>() {
    for (const T value : tensor.elements<T>())
      values.push_back(static_cast<A>(Widen(value)));
  })));
  return values;
}

// One channel of one instance.
template <typename T, typename A>
void NormaliseChannel(const T* x, T* y, int64_t n, RowMoments<A> moments,
                      A scale, A bias) {
  for (int64_t i = 0; i < n; ++i) {
    const A normalised = (Widen(x[i]) - moments.mean) / moments.deviation;
    y[i] = Rounded<T>(normalised * scale + bias);
  }
}

// Each instance's channels in `groups` groups, `per_scale` channels a scale.
absl::Status NormaliseGroups(OpContext& op, int64_t groups,
                             int64_t scale_count) {
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const AxisSplit split, ChannelsOf(op));
  if (groups < 1 || split.length % groups != 0)
    return OpContext::Invalid("{} channels in {} groups", split.length, groups);
  const int64_t channels = split.length / groups;
  const int64_t per_scale =
      scale_count == 0 ? 1 : std::max<int64_t>(split.length / scale_count, 1);
  return op.ForType<ADDNORM_FLOAT_TYPES>(x, [&]<typename T>() -> absl::Status {
    using A = ComputeType<T>;
    const A epsilon = static_cast<A>(op.attributes().Float("epsilon", 1e-5F));
    ASSIGN_OR_RETURN(const auto scale, Numbers<A>(op, 1, scale_count));
    ASSIGN_OR_RETURN(const auto bias, Numbers<A>(op, 2, scale_count));
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), x.dims()));
    if (x.count() == 0) return absl::OkStatus();
    const int64_t row = channels * split.inner;
    op.threads().ParallelFor(
        split.outer * groups, LineGrain(row), [&](int64_t begin, int64_t end) {
          for (int64_t group = begin; group < end; ++group) {
            const auto moments =
                MomentsOf(x.data<T>() + group * row, row, epsilon);
            for (int64_t c = 0; c < channels; ++c) {
              const int64_t at = group * row + c * split.inner;
              const int64_t channel = (group % groups) * channels + c;
              NormaliseChannel<T, A>(x.data<T>() + at,
                                     y->mutable_data<T>() + at, split.inner,
                                     moments, scale[channel / per_scale],
                                     bias[channel / per_scale]);
            }
          }
        });
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status GroupNormalization(OpContext& op) {
  ASSIGN_OR_RETURN(const AxisSplit split, ChannelsOf(op));
  const int64_t groups = op.attributes().Int("num_groups", 0);
  // Scales were for groups before opset 21.
  return NormaliseGroups(op, groups, op.opset() < 21 ? groups : split.length);
}

absl::Status InstanceNormalization(OpContext& op) {
  ASSIGN_OR_RETURN(const AxisSplit split, ChannelsOf(op));
  if (split.length == 0) {
    op.SetOutput(0, op.input(0));
    return absl::OkStatus();
  }
  return NormaliseGroups(op, split.length, split.length);
}

absl::Status BatchNormalization(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(5));
  ASSIGN_OR_RETURN(const AxisSplit split, ChannelsOf(op));
  if (op.attributes().Int("training_mode", 0) != 0)
    return OpContext::Unsupported("training is not supported");
  if (op.attributes().Int("spatial", 1) == 0)
    return OpContext::Unsupported("spatial = 0 is not supported");
  const Tensor& x = op.input(0);
  return op.ForType<ADDNORM_FLOAT_TYPES>(x, [&]<typename T>() -> absl::Status {
    using A = ComputeType<T>;
    const A epsilon = static_cast<A>(op.attributes().Float("epsilon", 1e-5F));
    std::vector<A> operands[5];
    for (size_t i = 1; i < 5; ++i) {
      ASSIGN_OR_RETURN(operands[i], Numbers<A>(op, i, split.length));
    }
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), x.dims()));
    if (x.count() == 0) return absl::OkStatus();
    op.threads().ParallelFor(split.outer * split.length, LineGrain(split.inner),
                             [&](int64_t begin, int64_t end) {
                               for (int64_t line = begin; line < end; ++line) {
                                 const int64_t channel = line % split.length;
                                 const RowMoments<A> moments{
                                     operands[3][channel],
                                     std::sqrt(operands[4][channel] + epsilon)};
                                 NormaliseChannel<T, A>(
                                     x.data<T>() + line * split.inner,
                                     y->mutable_data<T>() + line * split.inner,
                                     split.inner, moments, operands[1][channel],
                                     operands[2][channel]);
                               }
                             });
    return absl::OkStatus();
  });
}

}  // namespace addnorm::runtime
