// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Index operands turned into offsets, checked once, before any element moves.
//
// Offsets count elements of the data, dense and row-major. Gather* read and
// Scatter* write at them.
#ifndef ADDNORM_RUNTIME_OPS_INDEX_OFFSETS_H_
#define ADDNORM_RUNTIME_OPS_INDEX_OFFSETS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/op.h"

namespace addnorm::runtime {

// One offset for each element of `indices`, operand i: its own place in `data`,
// with the index along the axis instead.
absl::StatusOr<std::vector<int64_t>> ElementOffsets(const OpContext& op,
                                                    size_t i, int64_t axis);

// Slices of data behind tuples of indices.
struct TupleOffsets {
  std::vector<int64_t> offsets;
  int64_t run = 1;  // elements of a slice
  Dims outer_dims;  // those of the indices but the last
  Dims inner_dims;  // those of a slice
};

// Operand i holds tuples that index the axes of operand 0 from batch_dims on.
absl::StatusOr<TupleOffsets> OffsetsOfTuples(const OpContext& op, size_t i,
                                             int64_t batch_dims);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_INDEX_OFFSETS_H_
