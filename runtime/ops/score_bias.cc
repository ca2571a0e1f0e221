// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/score_bias.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "passes/ir/status_macros.h"

namespace addnorm::runtime {
namespace {

template <typename C>
constexpr C kMasked = -std::numeric_limits<C>::infinity();

// Adds `count` values of the bias's row that begins at `from`.
template <typename M, typename C>
void AddValues(const M* from, int64_t count, bool repeats, C* row) {
  for (int64_t i = 0; i < count; ++i) {
    const M value = from[repeats ? 0 : i];
    if constexpr (std::is_same_v<M, bool>) {
      row[i] += value ? C{0} : kMasked<C>;
    } else {
      row[i] += static_cast<C>(Widen(value));
    }
  }
}

template <typename C, typename... Ms>
bool AddValuesOf(const Tensor& values, int64_t offset, int64_t count,
                 bool repeats, C* row) {
  return (
      (values.type() == kTypeOf<Ms> &&
       (AddValues(values.data<Ms>() + offset, count, repeats, row), true)) ||
      ...);
}

// Elements from one value to the next along an axis that may be broadcast.
absl::StatusOr<int64_t> BroadcastStride(const Tensor& tensor, int64_t dim,
                                        int64_t wanted, int64_t stride) {
  if (dim == 1) return 0;
  if (dim == wanted) return stride;
  return OpContext::Invalid("the mask or bias {} has {} where {} is expected",
                            Describe(tensor), dim, wanted);
}

}  // namespace

template <typename C>
void AddBiasRow(const ScoreBias& bias, const ScoreRow& row, int64_t first,
                int64_t count, C* sums) {
  const int64_t given =
      bias.repeats ? count
                   : std::clamp<int64_t>(bias.columns - first, 0, count);
  const int64_t offset = row.batch * bias.batch_stride +
                         row.head * bias.head_stride +
                         row.row * bias.row_stride + (bias.repeats ? 0 : first);
  if (given > 0) {
    AddValuesOf<C, bool, ADDNORM_NUMBER_TYPES>(*bias.values, offset, given,
                                               bias.repeats, sums);
  }
  std::fill(sums + given, sums + count, kMasked<C>);
}

template void AddBiasRow(const ScoreBias&, const ScoreRow&, int64_t, int64_t,
                         float*);
template void AddBiasRow(const ScoreBias&, const ScoreRow&, int64_t, int64_t,
                         double*);

absl::StatusOr<ScoreBias> MakeScoreBias(const Tensor& tensor,
                                        const AttentionShape& shape,
                                        int64_t columns,
                                        bool broadcast_columns) {
  const int64_t rank = tensor.rank();
  if (rank > 4) {
    return OpContext::Invalid("the mask or bias {} has more than 4 axes",
                              Describe(tensor));
  }
  float probe = 0;
  if (!AddValuesOf<float, bool, ADDNORM_NUMBER_TYPES>(tensor, 0, 0, false,
                                                      &probe)) {
    return OpContext::Unsupported("a mask or bias {} is not supported",
                                  Describe(tensor));
  }
  Dims dims(static_cast<size_t>(4 - rank), 1);
  dims.insert(dims.end(), tensor.dims().begin(), tensor.dims().end());
  if (dims[3] > columns) {
    return OpContext::Invalid(
        "the mask or bias {} has {} columns, expected at most {}",
        Describe(tensor), dims[3], columns);
  }
  ScoreBias bias{.values = &tensor, .columns = dims[3]};
  bias.repeats = broadcast_columns && dims[3] == 1;
  ASSIGN_OR_RETURN(bias.row_stride,
                   BroadcastStride(tensor, dims[2], shape.q_rows, dims[3]));
  ASSIGN_OR_RETURN(bias.head_stride,
                   BroadcastStride(tensor, dims[1], shape.q_heads,
                                   Stride(dims[2], dims[3])));
  ASSIGN_OR_RETURN(bias.batch_stride,
                   BroadcastStride(tensor, dims[0], shape.batch,
                                   Stride(dims[1], dims[2], dims[3])));
  return bias;
}

}  // namespace addnorm::runtime
