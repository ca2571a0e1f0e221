// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Masks and biases of attention scores, broadcast to them without a copy.
//
// It is not the causal mask or the window, which are ranges of keys
// (KeyVisibility in attention_core.h).
//
//   ASSIGN_OR_RETURN(ScoreBias bias, MakeScoreBias(mask, shape, columns, …));
//   AddBiasRow(bias, {batch, head, row}, first_column, count, sums);
#ifndef ADDNORM_RUNTIME_OPS_SCORE_BIAS_H_
#define ADDNORM_RUNTIME_OPS_SCORE_BIAS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/op.h"
#include "runtime/ops/head_rows.h"

namespace addnorm::runtime {

// A tensor that is added to the scores, with the strides that broadcast it. A
// bool says whether the key takes part.
struct ScoreBias {
  const Tensor* values = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
  int64_t columns = 0;   // keys from here on are masked
  bool repeats = false;  // one column for all keys
};

// The bias of a tensor that broadcasts to [batch, q_heads, q_rows, columns];
// a single column serves all keys if `broadcast_columns`.
absl::StatusOr<ScoreBias> MakeScoreBias(const Tensor& tensor,
                                        const AttentionShape& shape,
                                        int64_t columns,
                                        bool broadcast_columns);

struct ScoreRow {
  int64_t batch = 0, head = 0, row = 0;
};

// sums[i] += the bias of column `first + i`; -inf where a bool is false and
// where there is no column. For float and double sums.
template <typename C>
void AddBiasRow(const ScoreBias& bias, const ScoreRow& row, int64_t first,
                int64_t count, C* sums);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_SCORE_BIAS_H_
