// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Axes and integer operands as ops of shapes and indices read them: negative
// ones counted from the end, ranges checked.
//
// Nothing here knows an operator.
//
//   ASSIGN_OR_RETURN(int64_t axis, NormalAxis(-1, x.rank()));  // rank - 1
#ifndef ADDNORM_RUNTIME_OPS_AXES_H_
#define ADDNORM_RUNTIME_OPS_AXES_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/op.h"

namespace addnorm::runtime {

// The axis in [0, rank).
absl::StatusOr<int64_t> NormalAxis(int64_t axis, int64_t rank);
// Each in [0, rank), no two equal.
absl::StatusOr<std::vector<int64_t>> NormalAxes(std::vector<int64_t> axes,
                                                int64_t rank);

// Operand i, or where it is not given the attribute: newer versions of many ops
// have as an operand what was an attribute. nullopt where there is neither.
absl::StatusOr<std::optional<std::vector<int64_t>>> IntsOf(
    const OpContext& op, size_t i, std::string_view attribute);
// The element of an operand that has one.
absl::StatusOr<int64_t> IntOf(const OpContext& op, size_t i);

// Operand i as indices into an axis of that length: each in [0, length).
absl::StatusOr<std::vector<int64_t>> IndicesOf(const OpContext& op, size_t i,
                                               int64_t length);

// Product of dims [begin, end), for tensors that have elements: otherwise the
// product of other dims may wrap.
int64_t Product(const Dims& dims, int64_t begin, int64_t end);

// Bytes of one of its elements.
inline int64_t ElementBytes(const Tensor& tensor) {
  return static_cast<int64_t>(ElementSize(tensor.type()));
}

// Output 0 with the elements of operand 0, for an op that then changes some of
// them. No copy where the operand gives its buffer away.
absl::StatusOr<Tensor*> OutputLikeInput(OpContext& op);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_AXES_H_
