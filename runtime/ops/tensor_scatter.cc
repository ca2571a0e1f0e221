// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// TensorScatter: new rows written into a cache of keys or values.
#include <algorithm>
#include <cstring>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/indexing_ops.h"
#include "runtime/ops/strided_copy.h"

namespace addnorm::runtime {
namespace {

// The dims of one TensorScatter: [batch, …, length, row…].
struct Cache {
  int64_t batches = 0;
  int64_t per_batch = 0;   // sequences of a batch
  int64_t length = 0;      // of a sequence in the cache
  int64_t new_length = 0;  // and in the update
  int64_t row = 0;         // bytes
};

absl::StatusOr<Cache> CacheOf(const OpContext& op) {
  const Tensor& past = op.input(0);
  const Tensor& update = op.input(1);
  ASSIGN_OR_RETURN(const int64_t axis,
                   NormalAxis(op.attributes().Int("axis", -2), past.rank()));
  bool fits =
      axis > 0 && update.type() == past.type() && update.rank() == past.rank();
  for (int64_t k = 0; fits && k < past.rank(); ++k) {
    fits = k == axis ? update.dims()[k] <= past.dims()[k]
                     : update.dims()[k] == past.dims()[k];
  }
  if (!fits) {
    return OpContext::Invalid("the update {} does not fit {} along axis {}",
                              Describe(update), Describe(past), axis);
  }
  return Cache{
      past.dims()[0], Product(past.dims(), 1, axis), past.dims()[axis],
      update.dims()[axis],
      Product(past.dims(), axis + 1, past.rank()) * ElementBytes(past)};
}

// For each batch, where its first new row goes.
absl::StatusOr<std::vector<int64_t>> FirstRows(const OpContext& op,
                                               const Cache& cache) {
  const std::string mode = op.attributes().String("mode", "linear");
  const bool circular = mode == "circular";
  if (!circular && mode != "linear")
    return OpContext::Invalid("mode is '{}'", mode);
  if (!op.has_input(2)) return std::vector<int64_t>(cache.batches, 0);
  ASSIGN_OR_RETURN(std::vector<int64_t> rows, op.Ints(2));
  if (static_cast<int64_t>(rows.size()) != cache.batches) {
    return OpContext::Invalid("{} write indices are given for {} batches",
                              rows.size(), cache.batches);
  }
  for (int64_t& row : rows) {
    if (circular && cache.length > 0) {
      row %= cache.length;
      if (row < 0) row += cache.length;
    } else if (row < 0 || row > cache.length - cache.new_length) {
      return OpContext::Invalid("{} rows do not fit at {} of {}",
                                cache.new_length, row, cache.length);
    }
  }
  return rows;
}

}  // namespace

absl::Status TensorScatter(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  ASSIGN_OR_RETURN(const Cache cache, CacheOf(op));
  const Tensor& update = op.input(1);
  // Without elements the other dims may be anything.
  if (update.count() == 0) return OutputLikeInput(op).status();
  ASSIGN_OR_RETURN(const std::vector<int64_t> first, FirstRows(op, cache));
  ASSIGN_OR_RETURN(Tensor * y, OutputLikeInput(op));
  const int64_t bytes = cache.new_length * cache.row;
  const auto write = [&](int64_t sequence) {
    const std::byte* from = update.data<std::byte>() + sequence * bytes;
    std::byte* to =
        y->mutable_data<std::byte>() + sequence * cache.length * cache.row;
    const int64_t start = first[sequence / cache.per_batch];
    // What is beyond the end goes to the beginning.
    const int64_t fitting =
        std::min(cache.new_length, cache.length - start) * cache.row;
    std::memcpy(to + start * cache.row, from, static_cast<size_t>(fitting));
    std::memcpy(to, from + fitting, static_cast<size_t>(bytes - fitting));
  };
  op.threads().ParallelFor(cache.batches * cache.per_batch, GrainOfBytes(bytes),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t i = begin; i < end; ++i) write(i);
                           });
  return absl::OkStatus();
}

}  // namespace addnorm::runtime
