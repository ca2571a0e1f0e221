// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/axes.h"

#include "passes/ir/status_macros.h"
#include "runtime/ops/strided_copy.h"

namespace addnorm::runtime {

absl::StatusOr<int64_t> NormalAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    return OpContext::Invalid("axis {} is out of range for rank {}", axis,
                              rank);
  }
  return axis < 0 ? axis + rank : axis;
}

absl::StatusOr<std::vector<int64_t>> NormalAxes(std::vector<int64_t> axes,
                                                int64_t rank) {
  // Before anything that grows with the number of axes.
  if (static_cast<int64_t>(axes.size()) > rank) {
    return OpContext::Invalid("{} axes are given for rank {}", axes.size(),
                              rank);
  }
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (int64_t& axis : axes) {
    ASSIGN_OR_RETURN(axis, NormalAxis(axis, rank));
    if (seen[axis]) return OpContext::Invalid("axis {} is given twice", axis);
    seen[axis] = true;
  }
  return axes;
}

absl::StatusOr<std::optional<std::vector<int64_t>>> IntsOf(
    const OpContext& op, size_t i, std::string_view attribute) {
  if (!op.has_input(i)) return op.attributes().Ints(attribute);
  ASSIGN_OR_RETURN(std::vector<int64_t> values, op.Ints(i));
  return values;
}

absl::StatusOr<int64_t> IntOf(const OpContext& op, size_t i) {
  if (op.input(i).count() != 1) {
    return OpContext::Invalid("operand {} is {}, expected one element", i,
                              Describe(op.input(i)));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, op.Ints(i));
  return values[0];
}

absl::StatusOr<std::vector<int64_t>> IndicesOf(const OpContext& op, size_t i,
                                               int64_t length) {
  ASSIGN_OR_RETURN(std::vector<int64_t> indices, op.Ints(i));
  for (int64_t& index : indices) {
    if (index < -length || index >= length) {
      return OpContext::Invalid(
          "index {} is out of range for an axis of length {}", index, length);
    }
    if (index < 0) index += length;
  }
  return indices;
}

int64_t Product(const Dims& dims, int64_t begin, int64_t end) {
  uint64_t product = 1;
  for (int64_t i = begin; i < end; ++i)
    product *= static_cast<uint64_t>(dims[i]);
  return static_cast<int64_t>(product);
}

absl::StatusOr<Tensor*> OutputLikeInput(OpContext& op) {
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), x.dims()));
  const std::byte* from = x.data<std::byte>();
  std::byte* to = y->mutable_data<std::byte>();
  if (from != to)
    Copy(op.threads(), {from, to, 1, {{int64_t(x.byte_size()), 1, 1}}});
  return y;
}

}  // namespace addnorm::runtime
