// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Conv over any number of spatial axes: the inputs that a block of results
// needs are laid out as a matrix, and the weights are multiplied with it.
#include "runtime/ops/convolution.h"

#include <algorithm>
#include <memory>

#include "passes/ir/status_macros.h"
#include "runtime/matrix_product.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/groups.h"
#include "runtime/ops/window.h"

namespace addnorm::runtime {
namespace {

struct Convolution {
  Window window;
  int64_t images = 0, groups = 1;
  int64_t inputs = 0, outputs = 0;          // channels of one group
  int64_t taps = 1;                         // elements of a window
  int64_t input_size = 1, output_size = 1;  // elements of a channel
  Dims dims;                                // of the result

  int64_t depth() const { return inputs * taps; }
};

absl::Status CheckOperands(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  const Tensor& weights = op.input(1);
  if (x.rank() < 3 || weights.rank() != x.rank() || weights.type() != x.type())
    return OpContext::Invalid("operands are {} and {}", Describe(x),
                              Describe(weights));
  if (!op.has_input(2)) return absl::OkStatus();
  const Tensor& bias = op.input(2);
  if (bias.type() == x.type() && bias.count() == weights.dims()[0])
    return absl::OkStatus();
  return OpContext::Invalid("the bias is {} for weights {}", Describe(bias),
                            Describe(weights));
}

absl::StatusOr<Convolution> ConvolutionOf(const OpContext& op) {
  RETURN_IF_ERROR(CheckOperands(op));
  const Dims& x = op.input(0).dims();
  const Dims& weights = op.input(1).dims();
  Convolution conv;
  conv.groups = op.attributes().Int("group", 1);
  if (conv.groups < 1 || x[1] % conv.groups != 0 ||
      weights[0] % conv.groups != 0 || x[1] / conv.groups != weights[1]) {
    return OpContext::Invalid("{} groups of {} and {}", conv.groups,
                              Describe(op.input(0)), Describe(op.input(1)));
  }
  const Dims kernel = SpatialDims(weights);
  if (op.attributes().Ints("kernel_shape").value_or(kernel) != kernel)
    return OpContext::Invalid("kernel_shape is not that of the weights {}",
                              Describe(op.input(1)));
  ASSIGN_OR_RETURN(conv.window, WindowOf(op, SpatialDims(x), kernel));
  conv.images = x[0];
  conv.inputs = weights[1];
  conv.outputs = weights[0] / conv.groups;
  conv.dims = {x[0], weights[0]};
  for (const WindowAxis& axis : conv.window) conv.dims.push_back(axis.output);
  if (!ElementCount(conv.dims))
    return OpContext::Invalid("the result {} is too large",
                              ToString(conv.dims));
  for (const WindowAxis& axis : conv.window) {
    conv.taps = SizeProduct(conv.taps, axis.kernel);
    conv.input_size = SizeProduct(conv.input_size, axis.input);
    conv.output_size = SizeProduct(conv.output_size, axis.output);
  }
  return conv;
}

// The elements that one tap sees from positions [begin, end) of the last axis:
// zeros before, between and behind the edges. `row` is the input's row.
template <typename T>
void FillRun(const WindowAxis& axis, int64_t k, const T* row, int64_t begin,
             int64_t end, T* to) {
  for (int64_t position = begin; position < end; ++position) {
    const int64_t at = axis.At(position, k);
    *to++ = at >= 0 && at < axis.input ? row[at] : T{};
  }
}

// The offset of the row that a tap sees from a window, both given as indices
// without the last axis; -1 if it is outside.
int64_t RowOffset(const Window& window, int64_t position, int64_t tap) {
  int64_t offset = 0, stride = window.back().input;
  for (size_t i = window.size() - 1; i-- > 0;) {
    const WindowAxis& axis = window[i];
    const int64_t at = axis.At(position % axis.output, tap % axis.kernel);
    if (at < 0 || at >= axis.input) return -1;
    offset += at * stride;
    stride *= axis.input;
    position /= axis.output;
    tap /= axis.kernel;
  }
  return offset;
}

// Row [channel, tap] of the matrix for windows [begin, begin + width).
template <typename T>
void FillMatrixRow(const Convolution& conv, const T* channel, int64_t tap,
                   int64_t begin, int64_t width, T* to) {
  const WindowAxis& last = conv.window.back();
  for (int64_t done = 0; done < width;) {
    const int64_t position = begin + done;
    const int64_t from = position % last.output;
    const int64_t run = std::min(width - done, last.output - from);
    const int64_t row =
        RowOffset(conv.window, position / last.output, tap / last.kernel);
    if (row < 0) {
      std::fill_n(to + done, run, T{});
    } else {
      FillRun(last, tap % last.kernel, channel + row, from, from + run,
              to + done);
    }
    done += run;
  }
}

// How many windows make a block: bounded memory, and the same for any number of
// threads.
int64_t BlockWidth(const Convolution& conv) {
  constexpr int64_t kElements = 1 << 20;
  const int64_t width = std::clamp<int64_t>(
      kElements / std::max<int64_t>(conv.depth(), 1), 16, 256);
  return std::min(width, conv.output_size);
}

template <typename T>
struct ConvolutionData {
  const T* x;
  const T* weights;
  const T* bias;  // nullptr for none
  T* y;
};

// Windows [begin, begin + width) of one group of one image, which are counted
// together as `part`.
template <typename T>
absl::Status ConvolveBlock(const Convolution& conv,
                           const ConvolutionData<T>& data, int64_t part,
                           int64_t begin, int64_t width, T* matrix,
                           ThreadPool& threads) {
  const int64_t group = part % conv.groups;
  const T* x = data.x + part * conv.inputs * conv.input_size;
  for (int64_t row = 0; row < conv.depth(); ++row) {
    FillMatrixRow(conv, x + row / conv.taps * conv.input_size, row % conv.taps,
                  begin, width, matrix + row * width);
  }
  GemmShape shape{.m = conv.outputs, .n = width, .k = conv.depth()};
  shape.ldc = conv.output_size;
  ProductTerms<T> terms;
  if (data.bias != nullptr) {
    terms.c = data.bias + group * conv.outputs;
    terms.c_row = 1;
  }
  return MatrixProduct<T>(
      shape, data.weights + group * conv.outputs * conv.depth(), matrix,
      data.y + part * conv.outputs * conv.output_size + begin, terms, threads);
}

template <typename T>
absl::Status Convolve(const Convolution& conv, const ConvolutionData<T>& data,
                      ThreadPool& threads) {
  const int64_t width = BlockWidth(conv);
  const int64_t blocks = (conv.output_size - 1) / width + 1;
  const auto run = [&](int64_t begin, int64_t end) {
    const auto matrix = std::make_unique_for_overwrite<T[]>(
        static_cast<size_t>(conv.depth() * width));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * width;
      RETURN_IF_ERROR(ConvolveBlock(conv, data, i / blocks, first,
                                    std::min(width, conv.output_size - first),
                                    matrix.get(), threads));
    }
    return absl::OkStatus();
  };
  return threads.TryParallelFor(conv.images * conv.groups * blocks, 1, run);
}

absl::Status Conv(OpContext& op) {
  ASSIGN_OR_RETURN(const Convolution conv, ConvolutionOf(op));
  const Tensor& x = op.input(0);
  return op.ForType<ADDNORM_FLOAT_TYPES>(x, [&]<typename T>() -> absl::Status {
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), conv.dims));
    if (y->count() == 0) return absl::OkStatus();
    return Convolve<T>(conv,
                       {x.data<T>(), op.input(1).data<T>(),
                        op.has_input(2) ? op.input(2).data<T>() : nullptr,
                        y->mutable_data<T>()},
                       op.threads());
  });
}

constexpr OpRow kRows[] = {
    {"", "AveragePool", AveragePool},
    {"", "CausalConvWithState", CausalConvWithState},
    {"", "Conv", Conv},
    {"", "GlobalAveragePool", GlobalAveragePool},
    {"", "GlobalMaxPool", GlobalMaxPool},
    {"", "MaxPool", MaxPool},
};

}  // namespace

OpTable ConvolutionOps() { return kRows; }

}  // namespace addnorm::runtime
