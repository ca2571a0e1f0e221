// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Gather and its relatives: runs of bytes read from computed places.
#include <algorithm>
#include <cstring>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/index_offsets.h"
#include "runtime/ops/indexing_ops.h"
#include "runtime/ops/strided_copy.h"

namespace addnorm::runtime {
namespace {

// Run i of the output is the run of kBytes (0: of `bytes`) of the data at
// place(i), which counts runs.
template <size_t kBytes, typename Place>
void CopyRuns(ThreadPool& threads, const std::byte* from, std::byte* to,
              int64_t count, int64_t bytes, const Place& place) {
  const auto copy = [=, &place](int64_t begin, int64_t end) {
    const size_t size = kBytes == 0 ? static_cast<size_t>(bytes) : kBytes;
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(to + i * size, from + place(i) * size, size);
  };
  threads.ParallelFor(count, GrainOfBytes(bytes), copy);
}

// As above: short runs are copied by a move of their size, not by a call.
template <typename Place>
void GatherRuns(ThreadPool& threads, const Tensor& data, Tensor& y, int64_t run,
                const Place& place) {
  if (y.count() == 0) return;
  const std::byte* from = data.data<std::byte>();
  std::byte* to = y.mutable_data<std::byte>();
  const int64_t count = y.count() / run;
  const int64_t bytes = run * ElementBytes(data);
  switch (bytes) {
    case 1:
      return CopyRuns<1>(threads, from, to, count, bytes, place);
    case 2:
      return CopyRuns<2>(threads, from, to, count, bytes, place);
    case 4:
      return CopyRuns<4>(threads, from, to, count, bytes, place);
    case 8:
      return CopyRuns<8>(threads, from, to, count, bytes, place);
    default:
      return CopyRuns<0>(threads, from, to, count, bytes, place);
  }
}

// Operand 0 with its axis replaced by `dims`: slices at the given indices.
absl::Status TakeAlong(OpContext& op, int64_t axis,
                       const std::vector<int64_t>& indices, const Dims& dims) {
  const Tensor& x = op.input(0);
  Dims output = x.dims();
  output.erase(output.begin() + axis);
  output.insert(output.begin() + axis, dims.begin(), dims.end());
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), std::move(output)));
  const int64_t length = x.dims()[axis];
  const int64_t each = static_cast<int64_t>(indices.size());
  const int64_t run = Product(x.dims(), axis + 1, x.rank());
  if (Product(x.dims(), 0, axis) == 1) {  // as a table of embeddings is read
    GatherRuns(op.threads(), x, *y, run, [&](int64_t i) { return indices[i]; });
  } else {
    GatherRuns(op.threads(), x, *y, run, [&](int64_t i) {
      return i / each * length + indices[i % each];
    });
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Gather(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const int64_t axis,
                   NormalAxis(op.attributes().Int("axis", 0), x.rank()));
  ASSIGN_OR_RETURN(const std::vector<int64_t> indices,
                   IndicesOf(op, 1, x.dims()[axis]));
  return TakeAlong(op, axis, indices, op.input(1).dims());
}

absl::Status Compress(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& condition = op.input(1);
  if (condition.type() != ir::DataType::kBool || condition.rank() != 1) {
    return OpContext::Invalid("the condition is {}, expected bools of rank 1",
                              Describe(condition));
  }
  const bool flat = !op.attributes().Has("axis");
  const int64_t given = op.attributes().Int("axis", 0);
  const Dims dims = flat ? Dims{op.input(0).count()} : op.input(0).dims();
  ASSIGN_OR_RETURN(const int64_t axis,
                   NormalAxis(given, static_cast<int64_t>(dims.size())));
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < condition.count(); ++i) {
    if (condition.data<bool>()[i]) indices.push_back(i);
  }
  if (!indices.empty() && indices.back() >= dims[axis]) {
    return OpContext::Invalid("the condition selects {} of an axis of {}",
                              indices.back(), dims[axis]);
  }
  if (!flat) {
    return TakeAlong(op, axis, indices, {static_cast<int64_t>(indices.size())});
  }
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(
      Tensor * y,
      op.Output(0, x.type(), {static_cast<int64_t>(indices.size())}));
  GatherRuns(op.threads(), x, *y, 1, [&](int64_t i) { return indices[i]; });
  return absl::OkStatus();
}

absl::Status GatherElements(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const int64_t axis,
                   NormalAxis(op.attributes().Int("axis", 0), x.rank()));
  ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                   ElementOffsets(op, 1, axis));
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), op.input(1).dims()));
  GatherRuns(op.threads(), x, *y, 1, [&](int64_t i) { return offsets[i]; });
  return absl::OkStatus();
}

absl::Status GatherNd(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(
      const TupleOffsets tuples,
      OffsetsOfTuples(op, 1, op.attributes().Int("batch_dims", 0)));
  Dims dims = tuples.outer_dims;
  dims.insert(dims.end(), tuples.inner_dims.begin(), tuples.inner_dims.end());
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), std::move(dims)));
  GatherRuns(op.threads(), x, *y, tuples.run,
             [&](int64_t i) { return tuples.offsets[i] / tuples.run; });
  return absl::OkStatus();
}

}  // namespace addnorm::runtime
