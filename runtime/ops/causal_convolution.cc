// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// CausalConvWithState: each channel convolved with a kernel of its own, over
// what came before it and itself; the last elements are the next step's past.
#include <algorithm>
#include <string>
#include <vector>

#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "runtime/element_types.h"
#include "runtime/exponential.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/convolution.h"

namespace addnorm::runtime {
namespace {

struct CausalConvolution {
  int64_t batch = 0, channels = 0, length = 0, taps = 0;
  bool with_silu = false;
};

absl::Status CheckOptional(const OpContext& op, size_t i, const Dims& dims) {
  if (!op.has_input(i)) return absl::OkStatus();
  const Tensor& tensor = op.input(i);
  if (tensor.type() == op.input(0).type() && tensor.dims() == dims)
    return absl::OkStatus();
  return OpContext::Invalid("operand {} is {}, expected {}", i,
                            Describe(tensor), ToString(dims));
}

absl::StatusOr<CausalConvolution> ShapeOf(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  const Tensor& weights = op.input(1);
  if (x.rank() != 3 || weights.rank() != 3 || weights.type() != x.type() ||
      weights.dims()[0] != x.dims()[1] || weights.dims()[1] != 1 ||
      weights.dims()[2] < 1) {
    return OpContext::Invalid("operands are {} and {}", Describe(x),
                              Describe(weights));
  }
  CausalConvolution conv{x.dims()[0], x.dims()[1], x.dims()[2],
                         weights.dims()[2], false};
  RETURN_IF_ERROR(CheckOptional(op, 2, {conv.channels}));
  RETURN_IF_ERROR(
      CheckOptional(op, 3, {conv.batch, conv.channels, conv.taps - 1}));
  const std::string activation = op.attributes().String("activation", "none");
  conv.with_silu = activation == "silu" || activation == "swish";
  if (!conv.with_silu && activation != "none")
    return OpContext::Invalid("activation is '{}'", ir::Printable(activation));
  return conv;
}

// One channel: `row` is its past and its elements, widened.
template <typename T>
void ConvolveChannel(const CausalConvolution& conv,
                     const std::vector<float>& row, const T* weights,
                     float bias, T* y) {
  for (int64_t i = 0; i < conv.length; ++i) {
    float sum = 0;
    for (int64_t tap = 0; tap < conv.taps; ++tap)
      sum += row[i + tap] * Widen(weights[tap]);
    sum += bias;
    if (conv.with_silu) sum = sum * (1.0F / (1.0F + Exponential(-sum)));
    y[i] = Rounded<T>(sum);
  }
}

template <typename T>
absl::Status Convolve(OpContext& op, const CausalConvolution& conv) {
  const Tensor& x = op.input(0);
  const int64_t past = conv.taps - 1;
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), x.dims()));
  ASSIGN_OR_RETURN(Tensor * state,
                   op.Output(1, x.type(), {conv.batch, conv.channels, past}));
  const T* before = op.has_input(3) ? op.input(3).data<T>() : nullptr;
  const T* biases = op.has_input(2) ? op.input(2).data<T>() : nullptr;
  const auto channels = [&](int64_t begin, int64_t end) {
    std::vector<T> row(static_cast<size_t>(past + conv.length));
    std::vector<float> wide(row.size());
    for (int64_t i = begin; i < end; ++i) {
      if (before != nullptr) std::copy_n(before + i * past, past, row.begin());
      std::copy_n(x.data<T>() + i * conv.length, conv.length,
                  row.begin() + past);
      std::transform(row.begin(), row.end(), wide.begin(), Widen<T>);
      const int64_t channel = i % conv.channels;
      ConvolveChannel(conv, wide, op.input(1).data<T>() + channel * conv.taps,
                      biases == nullptr ? 0.0F : Widen(biases[channel]),
                      y->mutable_data<T>() + i * conv.length);
      std::copy_n(row.end() - past, past, state->mutable_data<T>() + i * past);
    }
  };
  op.threads().ParallelFor(conv.batch * conv.channels,
                           LineGrain(conv.length * conv.taps), channels);
  return absl::OkStatus();
}

}  // namespace

absl::Status CausalConvWithState(OpContext& op) {
  ASSIGN_OR_RETURN(const CausalConvolution conv, ShapeOf(op));
  return op.ForType<float, Half, BFloat16>(
      op.input(0), [&]<typename T>() { return Convolve<T>(op, conv); });
}

}  // namespace addnorm::runtime
