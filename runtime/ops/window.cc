// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/window.h"

#include <limits>
#include <string>

#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"

namespace addnorm::runtime {
namespace {

// Larger numbers could overflow where two of them are multiplied.
constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

absl::StatusOr<std::vector<int64_t>> Numbers(const OpContext& op,
                                             std::string_view name,
                                             size_t count, int64_t least) {
  const std::vector<int64_t> numbers =
      op.attributes().Ints(name).value_or(std::vector<int64_t>(count, least));
  if (numbers.size() != count)
    return OpContext::Invalid("'{}' has {} numbers, expected {}", name,
                              numbers.size(), count);
  for (const int64_t number : numbers) {
    if (number < least || number > kLargest)
      return OpContext::Invalid("'{}' has {}, expected {} to {}", name, number,
                                least, kLargest);
  }
  return numbers;
}

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// As many windows as the input has steps; what they lack is padding.
void PadToSame(WindowAxis& axis, bool more_at_end) {
  axis.output = DivideUp(axis.input, axis.stride);
  const int64_t extent = (axis.kernel - 1) * axis.dilation + 1;
  const int64_t total = std::max<int64_t>(
      (axis.output - 1) * axis.stride + extent - axis.input, 0);
  axis.begin = more_at_end ? total / 2 : total - total / 2;
  axis.end = total - axis.begin;
}

absl::Status CountWindows(WindowAxis& axis, bool round_up) {
  const int64_t extent = (axis.kernel - 1) * axis.dilation + 1;
  const int64_t room = axis.input + axis.begin + axis.end - extent;
  if (room < 0)
    return OpContext::Invalid(
        "a window of {} does not fit in {} elements and {} of padding", extent,
        axis.input, axis.begin + axis.end);
  if (!round_up) {
    axis.output = room / axis.stride + 1;
    return absl::OkStatus();
  }
  axis.output = DivideUp(room, axis.stride) + 1;
  // The last window must not begin in the padding at the end.
  if ((axis.output - 1) * axis.stride >= axis.input + axis.begin) --axis.output;
  return absl::OkStatus();
}

absl::Status PlaceWindows(const OpContext& op, Window& window) {
  const std::string mode = op.attributes().String("auto_pad", "NOTSET");
  const bool upper = mode == "SAME_UPPER";
  const bool same = upper || mode == "SAME_LOWER";
  if (!same && mode != "NOTSET" && mode != "VALID" && !mode.empty())
    return OpContext::Invalid("auto_pad is '{}'", ir::Printable(mode));
  const bool round_up = op.attributes().Int("ceil_mode", 0) != 0;
  for (WindowAxis& axis : window) {
    if (mode == "VALID") axis.begin = axis.end = 0;
    if (same) {
      PadToSame(axis, upper);
    } else {
      RETURN_IF_ERROR(CountWindows(axis, round_up));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Window> WindowOf(const OpContext& op, const Dims& input,
                                const Dims& kernel) {
  const size_t rank = input.size();
  if (kernel.size() != rank)
    return OpContext::Invalid("the kernel {} has another rank than {}",
                              ToString(kernel), ToString(input));
  ASSIGN_OR_RETURN(const auto strides, Numbers(op, "strides", rank, 1));
  ASSIGN_OR_RETURN(const auto dilations, Numbers(op, "dilations", rank, 1));
  ASSIGN_OR_RETURN(const auto pads, Numbers(op, "pads", 2 * rank, 0));
  Window window;
  for (size_t i = 0; i < rank; ++i) {
    if (kernel[i] < 1 || kernel[i] > kLargest || input[i] > kLargest)
      return OpContext::Invalid("a kernel {} on {}", ToString(kernel),
                                ToString(input));
    window.push_back({.input = input[i],
                      .kernel = kernel[i],
                      .stride = strides[i],
                      .dilation = dilations[i],
                      .begin = pads[i],
                      .end = pads[rank + i]});
  }
  RETURN_IF_ERROR(PlaceWindows(op, window));
  return window;
}

Dims SpatialDims(const Dims& dims) {
  return Dims(dims.begin() + std::min<size_t>(2, dims.size()), dims.end());
}

Dims OutputSizes(const Window& window) {
  Dims sizes;
  for (const WindowAxis& axis : window) sizes.push_back(axis.output);
  return sizes;
}

}  // namespace addnorm::runtime
