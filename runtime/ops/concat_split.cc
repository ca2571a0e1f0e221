// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Concat and Split: pieces of a tensor along one axis.
#include <algorithm>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/shape_ops.h"
#include "runtime/ops/strided_copy.h"

namespace addnorm::runtime {
namespace {

// Rows of contiguous bytes: what lies behind an index of the axis, for all
// indices before it.
struct Rows {
  int64_t outer = 1;
  int64_t step = 1;  // bytes of one index of the axis
};

Rows RowsOf(const Tensor& tensor, int64_t axis) {
  return {
      Product(tensor.dims(), 0, axis),
      Product(tensor.dims(), axis + 1, tensor.rank()) * ElementBytes(tensor)};
}

absl::StatusOr<Dims> ConcatDims(const OpContext& op, int64_t axis) {
  const Tensor& first = op.input(0);
  Dims dims = first.dims();
  dims[axis] = 0;
  for (size_t i = 0; i < op.input_count(); ++i) {
    const Tensor& x = op.input(i);
    bool fits = x.type() == first.type() && x.rank() == first.rank();
    for (int64_t k = 0; fits && k < x.rank(); ++k)
      fits = k == axis || x.dims()[k] == first.dims()[k];
    if (!fits ||
        __builtin_add_overflow(dims[axis], x.dims()[axis], &dims[axis])) {
      return OpContext::Invalid("{} does not join {} along axis {}",
                                Describe(x), Describe(first), axis);
    }
  }
  return dims;
}

// Lengths of the outputs of a Split without explicit ones: equal, a last one
// shorter.
absl::StatusOr<std::vector<int64_t>> EqualParts(const OpContext& op,
                                                int64_t length) {
  const int64_t outputs = static_cast<int64_t>(op.output_count());
  const int64_t parts = op.attributes().Int("num_outputs", outputs);
  if (parts < 1 || parts != outputs) {
    return OpContext::Invalid("num_outputs is {}, the node has {} outputs",
                              parts, outputs);
  }
  const int64_t part = length / parts + (length % parts != 0 ? 1 : 0);
  const int64_t last = length - part * (parts - 1);
  if (last < 0) {
    return OpContext::Invalid("an axis of {} is not cut into {} parts", length,
                              parts);
  }
  std::vector<int64_t> lengths(parts, part);
  lengths.back() = last;
  return lengths;
}

absl::StatusOr<std::vector<int64_t>> PartsOf(const OpContext& op,
                                             int64_t length) {
  ASSIGN_OR_RETURN(const auto given, IntsOf(op, 1, "split"));
  if (!given) return EqualParts(op, length);
  if (given->size() != op.output_count()) {
    return OpContext::Invalid("{} lengths are given for {} outputs",
                              given->size(), op.output_count());
  }
  int64_t rest = length;
  for (const int64_t part : *given) {
    if (part < 0 || part > rest)
      return OpContext::Invalid("the lengths {} do not cut an axis of {}",
                                ToString(*given), length);
    rest -= part;
  }
  if (rest != 0)
    return OpContext::Invalid("the lengths {} do not cut an axis of {}",
                              ToString(*given), length);
  return *given;
}

}  // namespace

absl::Status Concat(OpContext& op) {
  if (op.input_count() == 0) return OpContext::Invalid("has no operands");
  RETURN_IF_ERROR(op.RequireInputs(op.input_count()));
  const Tensor& first = op.input(0);
  ASSIGN_OR_RETURN(const int64_t axis,
                   NormalAxis(op.attributes().Int("axis", 1), first.rank()));
  ASSIGN_OR_RETURN(Dims dims, ConcatDims(op, axis));
  if (op.input_count() == 1) {
    op.SetOutput(0, first);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, first.type(), dims));
  if (y->count() == 0) return absl::OkStatus();
  const Rows rows = RowsOf(*y, axis);
  std::byte* to = y->mutable_data<std::byte>();
  for (size_t i = 0; i < op.input_count(); ++i) {
    const int64_t bytes = op.input(i).dims()[axis] * rows.step;
    Copy(op.threads(),
         {op.input(i).data<std::byte>(),
          to,
          1,
          {{rows.outer, bytes, dims[axis] * rows.step}, {bytes, 1, 1}}});
    to += bytes;
  }
  return absl::OkStatus();
}

absl::Status Split(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const int64_t axis,
                   NormalAxis(op.attributes().Int("axis", 0), x.rank()));
  const int64_t length = x.dims()[axis];
  ASSIGN_OR_RETURN(const std::vector<int64_t> parts, PartsOf(op, length));
  const Rows rows = RowsOf(x, axis);
  const std::byte* from = x.data<std::byte>();
  Dims dims = x.dims();
  for (size_t i = 0; i < parts.size(); ++i) {
    dims[axis] = parts[i];
    ASSIGN_OR_RETURN(Tensor * y, op.Output(i, x.type(), dims));
    if (x.count() == 0) continue;
    const int64_t bytes = parts[i] * rows.step;
    Copy(op.threads(),
         {from,
          y->mutable_data<std::byte>(),
          1,
          {{rows.outer, length * rows.step, bytes}, {bytes, 1, 1}}});
    from += bytes;
  }
  return absl::OkStatus();
}

}  // namespace addnorm::runtime
