// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Slice and ReverseSequence: parts of a tensor, forwards or backwards.
#include <algorithm>
#include <numeric>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/shape_ops.h"
#include "runtime/ops/strided_copy.h"

namespace addnorm::runtime {
namespace {

// Indices first, first + step, … of an axis.
struct Range {
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 0;
};

// Bounds beyond the axis are cut to it as the operator says: backwards, a start
// before the first index is the first index (NumPy would find nothing).
Range MakeRange(int64_t start, int64_t end, int64_t step, int64_t length) {
  if (length == 0) return {0, step, 0};
  if (start < 0) start += length;
  if (end < 0) end += length;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, length);
    end = std::clamp<int64_t>(end, start, length);
    return {start, step, end == start ? 0 : (end - start - 1) / step + 1};
  }
  start = std::clamp<int64_t>(start, 0, length - 1);
  end = std::clamp<int64_t>(end, -1, start);
  // -(step + 1): the negative of the smallest step is no number.
  const int64_t gap = -(step + 1);
  const int64_t span = start - end;
  // 1 + (span - 1) / (gap + 1), without the overflow.
  const int64_t more =
      span <= 1 || gap >= span - 1 ? 0 : (span - 1) / (gap + 1);
  return {start, step, span == 0 ? 0 : 1 + more};
}

struct SliceBounds {
  std::vector<int64_t> starts, ends, axes, steps;
};

absl::StatusOr<SliceBounds> BoundsOf(const OpContext& op) {
  SliceBounds bounds;
  ASSIGN_OR_RETURN(const auto starts, IntsOf(op, 1, "starts"));
  ASSIGN_OR_RETURN(const auto ends, IntsOf(op, 2, "ends"));
  ASSIGN_OR_RETURN(const auto axes, IntsOf(op, 3, "axes"));
  if (!starts || !ends || starts->size() != ends->size())
    return OpContext::Invalid("starts and ends are not as many");
  const size_t count = starts->size();
  bounds.starts = *starts;
  bounds.ends = *ends;
  bounds.steps.assign(count, 1);
  if (op.has_input(4)) {
    ASSIGN_OR_RETURN(bounds.steps, op.Ints(4));
  }
  std::vector<int64_t> given(count);
  std::iota(given.begin(), given.end(), 0);
  if (axes) given = *axes;
  if (given.size() != count || bounds.steps.size() != count)
    return OpContext::Invalid("starts, axes and steps are not as many");
  if (std::count(bounds.steps.begin(), bounds.steps.end(), 0) != 0)
    return OpContext::Invalid("a step is 0");
  ASSIGN_OR_RETURN(bounds.axes, NormalAxes(given, op.input(0).rank()));
  return bounds;
}

}  // namespace

absl::Status Slice(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const SliceBounds bounds, BoundsOf(op));
  std::vector<Range> ranges;
  for (const int64_t dim : x.dims()) ranges.push_back({0, 1, dim});
  bool forwards = true;
  for (size_t i = 0; i < bounds.axes.size(); ++i) {
    ranges[bounds.axes[i]] =
        MakeRange(bounds.starts[i], bounds.ends[i], bounds.steps[i],
                  x.dims()[bounds.axes[i]]);
    forwards &= bounds.steps[i] > 0;
  }
  Dims dims;
  for (const Range& range : ranges) dims.push_back(range.count);
  if (forwards && dims == x.dims()) {
    op.SetOutput(0, x);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), dims));
  if (y->count() == 0) return absl::OkStatus();
  const int64_t element = ElementBytes(x);
  const Dims from = ByteStrides(x.dims(), element);
  const Dims to = ByteStrides(dims, element);
  StridedCopy copy{
      x.data<std::byte>(), y->mutable_data<std::byte>(), element, {}};
  for (size_t i = 0; i < dims.size(); ++i) {
    copy.from += ranges[i].first * from[i];
    // A step that is never made may be too large to multiply.
    const int64_t step = dims[i] == 1 ? 0 : ranges[i].step * from[i];
    copy.axes.push_back({dims[i], step, to[i]});
  }
  Copy(op.threads(), std::move(copy));
  return absl::OkStatus();
}

absl::Status ReverseSequence(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  const int64_t batch_axis = op.attributes().Int("batch_axis", 1);
  const int64_t time_axis = op.attributes().Int("time_axis", 0);
  const bool known = (batch_axis == 0 && time_axis == 1) ||
                     (batch_axis == 1 && time_axis == 0);
  if (x.rank() < 2 || !known) {
    return OpContext::Invalid(
        "{} with batch axis {} and time axis {}, expected 0 and 1", Describe(x),
        batch_axis, time_axis);
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, op.Ints(1));
  const int64_t batches = x.dims()[batch_axis], time = x.dims()[time_axis];
  bool fits = static_cast<int64_t>(lengths.size()) == batches;
  for (const int64_t length : lengths) fits &= length >= 0 && length <= time;
  if (!fits)
    return OpContext::Invalid("sequence lengths do not fit {}", Describe(x));
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), x.dims()));
  if (x.count() == 0) return absl::OkStatus();
  const Dims strides = ByteStrides(x.dims(), ElementBytes(x));
  const int64_t step = strides[time_axis], run = strides[1];
  for (int64_t batch = 0; batch < batches; ++batch) {
    const int64_t length = lengths[batch];
    const std::byte* from = x.data<std::byte>() + batch * strides[batch_axis];
    std::byte* to = y->mutable_data<std::byte>() + batch * strides[batch_axis];
    if (length > 0) {
      Copy(op.threads(),
           {from + (length - 1) * step, to, run, {{length, -step, step}}});
    }
    Copy(op.threads(), {from + length * step,
                        to + length * step,
                        run,
                        {{time - length, step, step}}});
  }
  return absl::OkStatus();
}

}  // namespace addnorm::runtime
