// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// MaxPool, AveragePool and their global forms. Sums go over a window's elements
// in order, each axis within the one before.
#include <algorithm>
#include <string>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/element_types.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/convolution.h"
#include "runtime/ops/reducers.h"
#include "runtime/ops/window.h"
#include "runtime/row_sum.h"

namespace addnorm::runtime {
namespace {

struct Pooling {
  Window window;
  Dims dims;                                // of the result
  int64_t planes = 1;                       // images times channels
  int64_t input_size = 1, output_size = 1;  // of a plane
};

absl::StatusOr<Pooling> PoolingOf(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  if (x.rank() < 3)
    return OpContext::Invalid("{} has no spatial axes", Describe(x));
  const auto kernel = op.attributes().Ints("kernel_shape");
  if (!kernel) return OpContext::Invalid("has no kernel_shape");
  Pooling pool;
  ASSIGN_OR_RETURN(pool.window, WindowOf(op, SpatialDims(x.dims()), *kernel));
  pool.dims = {x.dims()[0], x.dims()[1]};
  pool.planes = SizeProduct(x.dims()[0], x.dims()[1]);
  for (const WindowAxis& axis : pool.window) pool.dims.push_back(axis.output);
  if (!ElementCount(pool.dims))
    return OpContext::Invalid("the result {} is too large",
                              ToString(pool.dims));
  for (const WindowAxis& axis : pool.window) {
    pool.input_size = SizeProduct(pool.input_size, axis.input);
    pool.output_size = SizeProduct(pool.output_size, axis.output);
  }
  return pool;
}

// The elements of one window, as offsets in the plane, in order.
class Taps {
 public:
  explicit Taps(const Window& window)
      : window_(window), positions_(window.size()) {}

  // The window at that index of the plane's results.
  void MoveTo(int64_t index) {
    for (size_t i = window_.size(); i-- > 0;) {
      positions_[i] = index % window_[i].output;
      index /= window_[i].output;
    }
  }

  template <typename F>
  void ForEach(F&& f) const {
    Visit(0, 0, f);
  }

  // How many there are; the padding counts as well if asked to.
  int64_t Count(bool with_padding) const {
    int64_t count = 1;
    for (size_t i = 0; i < window_.size(); ++i) {
      const WindowAxis& axis = window_[i];
      const int64_t first = with_padding ? 0 : axis.FirstTapFrom(At(i), 0);
      count *=
          axis.FirstTapFrom(At(i), axis.input + (with_padding ? axis.end : 0)) -
          first;
    }
    return count;
  }

 private:
  int64_t At(size_t axis) const { return positions_[axis]; }

  template <typename F>
  void Visit(size_t i, int64_t offset, F& f) const {
    if (i == window_.size()) return f(offset);
    const WindowAxis& axis = window_[i];
    const int64_t end = axis.FirstTapFrom(At(i), axis.input);
    for (int64_t k = axis.FirstTapFrom(At(i), 0); k < end; ++k)
      Visit(i + 1, offset * axis.input + axis.At(At(i), k), f);
  }

  const Window& window_;
  std::vector<int64_t> positions_;
};

// Calls f(taps, plane, output) for every window of every plane.
template <typename F>
void ForWindows(const Pooling& pool, ThreadPool& threads, F f) {
  int64_t taps = 1;
  for (const WindowAxis& axis : pool.window)
    taps = SizeProduct(taps, std::min(axis.kernel, axis.input + 1));
  threads.ParallelFor(SizeProduct(pool.planes, pool.output_size),
                      LineGrain(taps), [&](int64_t begin, int64_t end) {
                        Taps window(pool.window);
                        for (int64_t i = begin; i < end; ++i) {
                          window.MoveTo(i % pool.output_size);
                          f(window, i / pool.output_size, i);
                        }
                      });
}

// The index in the whole tensor as MaxPool's second output has it: of the last
// axes in column-major order if asked to.
int64_t FlatIndex(const Pooling& pool, int64_t plane, int64_t offset,
                  bool column_major) {
  if (offset < 0) return -1;
  if (column_major) {
    int64_t swapped = 0, stride = pool.input_size;
    for (size_t i = pool.window.size(); i-- > 0;) {
      stride /= pool.window[i].input;
      swapped += offset % pool.window[i].input * stride;
      offset /= pool.window[i].input;
    }
    offset = swapped;
  }
  return plane * pool.input_size + offset;
}

template <typename T>
absl::Status MaxOfWindows(OpContext& op, const Pooling& pool) {
  using A = ComputeType<T>;
  const T* x = op.input(0).data<T>();
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, kTypeOf<T>, pool.dims));
  int64_t* indices = nullptr;
  if (op.wants_output(1)) {
    ASSIGN_OR_RETURN(Tensor * tensor,
                     op.Output(1, ir::DataType::kInt64, pool.dims));
    indices = tensor->mutable_data<int64_t>();
  }
  const bool column_major = op.attributes().Int("storage_order", 0) != 0;
  ForWindows(pool, op.threads(),
             [&](const Taps& window, int64_t plane, int64_t output) {
               A best = reducers::Max<A>::Identity();
               int64_t at = -1;
               window.ForEach([&](int64_t offset) {
                 const A value = Widen(x[plane * pool.input_size + offset]);
                 if (at >= 0 && !(value > best) && value == value) return;
                 if (best != best) return;
                 best = value;
                 at = offset;
               });
               y->mutable_data<T>()[output] = Rounded<T>(best);
               if (indices != nullptr)
                 indices[output] = FlatIndex(pool, plane, at, column_major);
             });
  return absl::OkStatus();
}

// Reducer over each plane, whose result has ones for the spatial axes.
template <template <typename> typename Reducer>
absl::Status PoolPlanes(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  if (x.rank() < 3)
    return OpContext::Invalid("{} has no spatial axes", Describe(x));
  ASSIGN_OR_RETURN(const AxisSplit split, FlattenAt(x.dims(), 2));
  Dims dims(static_cast<size_t>(x.rank()), 1);
  std::copy_n(x.dims().begin(), 2, dims.begin());
  return op.ForType<ADDNORM_FLOAT_TYPES>(x, [&]<typename T>() -> absl::Status {
    using A = ComputeType<T>;
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), dims));
    op.threads().ParallelFor(
        split.outer, LineGrain(split.length), [&](int64_t begin, int64_t end) {
          for (int64_t plane = begin; plane < end; ++plane) {
            const T* row = x.data<T>() + plane * split.length;
            const A folded = FoldRow<A>(
                split.length, Reducer<A>::Identity(),
                [](A a, A b) { return Reducer<A>::Fold(a, b); },
                [&](int64_t i) { return Widen(row[i]); });
            y->mutable_data<T>()[plane] =
                Rounded<T>(Reducer<A>::Finish(folded, split.length));
          }
        });
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status MaxPool(OpContext& op) {
  ASSIGN_OR_RETURN(const Pooling pool, PoolingOf(op));
  return op.ForType<ADDNORM_FLOAT_TYPES, int8_t, uint8_t>(
      op.input(0), [&]<typename T>() { return MaxOfWindows<T>(op, pool); });
}

absl::Status AveragePool(OpContext& op) {
  ASSIGN_OR_RETURN(const Pooling pool, PoolingOf(op));
  const Tensor& x = op.input(0);
  const bool with_padding = op.attributes().Int("count_include_pad", 0) != 0;
  return op.ForType<ADDNORM_FLOAT_TYPES>(x, [&]<typename T>() -> absl::Status {
    using A = ComputeType<T>;
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), pool.dims));
    ForWindows(
        pool, op.threads(),
        [&](const Taps& window, int64_t plane, int64_t output) {
          const T* from = x.data<T>() + plane * pool.input_size;
          A sum{0};
          window.ForEach([&](int64_t offset) { sum += Widen(from[offset]); });
          y->mutable_data<T>()[output] =
              Rounded<T>(sum / static_cast<A>(window.Count(with_padding)));
        });
    return absl::OkStatus();
  });
}

absl::Status GlobalAveragePool(OpContext& op) {
  return PoolPlanes<reducers::Mean>(op);
}
absl::Status GlobalMaxPool(OpContext& op) {
  return PoolPlanes<reducers::Max>(op);
}

}  // namespace addnorm::runtime
