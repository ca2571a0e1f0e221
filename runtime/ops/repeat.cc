// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Expand and Tile: outputs that have an element of their operand many times.
#include <algorithm>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/expansion.h"
#include "runtime/ops/shape_ops.h"
#include "runtime/ops/strided_copy.h"

namespace addnorm::runtime {
namespace {

// Dims that both broadcast to, as NumPy does.
absl::StatusOr<Dims> BroadcastDims(const Tensor& x, const Dims& shape) {
  Dims dims(std::max(x.dims().size(), shape.size()), 1);
  std::copy(shape.rbegin(), shape.rend(), dims.rbegin());
  const size_t added = dims.size() - x.dims().size();
  for (size_t i = 0; i < x.dims().size(); ++i) {
    int64_t& dim = dims[added + i];
    if (dim == 1) dim = x.dims()[i];
    if (dim != x.dims()[i] && x.dims()[i] != 1) {
      return OpContext::Invalid("{} does not expand to {}", Describe(x),
                                ToString(shape));
    }
  }
  return dims;
}

}  // namespace

absl::Status Expand(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const Dims shape, op.Ints(1));
  ASSIGN_OR_RETURN(const Dims dims, BroadcastDims(x, shape));
  if (ElementCount(dims) == x.count()) {
    op.SetOutput(0, x.WithDims(dims));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), dims));
  CopyExpanded(op.threads(), x, *y);
  return absl::OkStatus();
}

absl::Status Tile(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, op.Ints(1));
  if (static_cast<int64_t>(repeats.size()) != x.rank()) {
    return OpContext::Invalid("{} repeats are given for rank {}",
                              repeats.size(), x.rank());
  }
  Dims dims = x.dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (repeats[i] < 0 ||
        __builtin_mul_overflow(dims[i], repeats[i], &dims[i])) {
      return OpContext::Invalid("{} is not repeated {} times", Describe(x),
                                ToString(repeats));
    }
  }
  if (dims == x.dims()) {
    op.SetOutput(0, x);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), dims));
  const int64_t element = ElementBytes(x);
  const Dims from = ByteStrides(x.dims(), element);
  const Dims to = ByteStrides(dims, element);
  StridedCopy copy{
      x.data<std::byte>(), y->mutable_data<std::byte>(), element, {}};
  for (size_t i = 0; i < dims.size(); ++i) {
    // Unsigned: to[i] may have wrapped where the output has no elements.
    const auto again = static_cast<int64_t>(static_cast<uint64_t>(to[i]) *
                                            static_cast<uint64_t>(x.dims()[i]));
    copy.axes.push_back({repeats[i], 0, again});
    copy.axes.push_back({x.dims()[i], from[i], to[i]});
  }
  Copy(op.threads(), std::move(copy));
  return absl::OkStatus();
}

}  // namespace addnorm::runtime
