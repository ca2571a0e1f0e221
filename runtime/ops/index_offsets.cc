// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/index_offsets.h"

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/strided_copy.h"

namespace addnorm::runtime {
namespace {

absl::Status CheckIndexDims(const Tensor& data, const Tensor& indices,
                            int64_t axis) {
  bool fits = data.rank() == indices.rank();
  for (int64_t k = 0; fits && k < data.rank(); ++k)
    fits = k == axis || indices.dims()[k] <= data.dims()[k];
  if (fits) return absl::OkStatus();
  return OpContext::Invalid("indices {} do not fit {} along axis {}",
                            Describe(indices), Describe(data), axis);
}

absl::Status CheckTupleDims(const Tensor& data, const Tensor& indices,
                            int64_t batch_dims) {
  bool fits = data.rank() > 0 && indices.rank() > 0 && batch_dims >= 0 &&
              batch_dims < std::min(data.rank(), indices.rank()) &&
              indices.dims().back() >= 1 &&
              indices.dims().back() <= data.rank() - batch_dims;
  for (int64_t k = 0; fits && k < batch_dims; ++k)
    fits = data.dims()[k] == indices.dims()[k];
  if (fits) return absl::OkStatus();
  return OpContext::Invalid("indices {} do not fit {} with {} batch dims",
                            Describe(indices), Describe(data), batch_dims);
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ElementOffsets(const OpContext& op,
                                                    size_t i, int64_t axis) {
  const Tensor& data = op.input(0);
  const Tensor& indices = op.input(i);
  RETURN_IF_ERROR(CheckIndexDims(data, indices, axis));
  ASSIGN_OR_RETURN(std::vector<int64_t> offsets,
                   IndicesOf(op, i, data.dims()[axis]));
  const Dims strides = ByteStrides(data.dims(), 1);
  const Dims& dims = indices.dims();
  // The place of the element that is looked at, and its offset without what
  // the axis adds.
  std::vector<int64_t> place(dims.size(), 0);
  int64_t base = 0;
  for (int64_t& offset : offsets) {
    offset = base + offset * strides[axis];
    for (int64_t k = data.rank(); k-- > 0;) {
      const int64_t step = k == axis ? 0 : strides[k];
      base += step;
      if (++place[k] < dims[k]) break;
      base -= step * dims[k];
      place[k] = 0;
    }
  }
  return offsets;
}

absl::StatusOr<TupleOffsets> OffsetsOfTuples(const OpContext& op, size_t i,
                                             int64_t batch_dims) {
  const Tensor& data = op.input(0);
  const Tensor& indices = op.input(i);
  RETURN_IF_ERROR(CheckTupleDims(data, indices, batch_dims));
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, op.Ints(i));
  const int64_t width = indices.dims().back();
  const int64_t first_inner = batch_dims + width;
  TupleOffsets tuples;
  tuples.outer_dims.assign(indices.dims().begin(), indices.dims().end() - 1);
  tuples.inner_dims.assign(data.dims().begin() + first_inner,
                           data.dims().end());
  tuples.run = Product(data.dims(), first_inner, data.rank());
  const int64_t batch_size = Product(data.dims(), batch_dims, data.rank());
  const int64_t per_batch =
      Product(indices.dims(), batch_dims, indices.rank() - 1);
  const Dims strides = ByteStrides(data.dims(), 1);
  tuples.offsets.resize(values.size() / width);
  for (size_t t = 0; t < tuples.offsets.size(); ++t) {
    int64_t offset = static_cast<int64_t>(t) / per_batch * batch_size;
    for (int64_t k = 0; k < width; ++k) {
      const int64_t axis = batch_dims + k, length = data.dims()[axis];
      int64_t index = values[t * width + k];
      if (index < -length || index >= length) {
        return OpContext::Invalid("index {} is out of range for dim {} of {}",
                                  index, axis, Describe(data));
      }
      offset += (index < 0 ? index + length : index) * strides[axis];
    }
    tuples.offsets[t] = offset;
  }
  return tuples;
}

}  // namespace addnorm::runtime
