// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax(q · kᵀ * scale + bias) · v for all heads of a batch: what every
// attention op comes down to once it has found its operands.
//
// It knows no node: ops check operands, place caches and say which keys a query
// sees. It takes blocks of query rows, so that one block's scores are all that
// a thread holds of them. Numbers: everything between the operands and the
// result is float (double for double), rounded once when y or the scores are
// written. Order of sums: a score over the elements of a head in 16 lanes, or
// as Gemm has it; the softmax's denominator in 32 lanes; y over keys in order,
// or as Gemm has it. Which of the two depends on shapes alone.
//
//   AttentionCall<float> call{.shape = shape, .q = HeadMajor(q, …), …};
//   RETURN_IF_ERROR(RunAttention(op, call));
#ifndef ADDNORM_RUNTIME_OPS_ATTENTION_CORE_H_
#define ADDNORM_RUNTIME_OPS_ATTENTION_CORE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/op.h"
#include "runtime/ops/head_rows.h"
#include "runtime/ops/score_bias.h"

namespace addnorm::runtime {

// Which keys a query sees, by positions in the sequence. Empty vectors stand
// for past_rows (first_query), zeros (first_key) and all rows (*_count).
struct KeyVisibility {
  int64_t past_rows = 0;
  std::vector<int64_t> first_query;  // position of query row 0, by batch
  std::vector<int64_t> first_key;    // position of key row 0, by batch
  std::vector<int64_t> query_count;  // later rows see no key: y is zero
  std::vector<int64_t> key_count;    // later rows are padding
  bool causal = false;
  int64_t left = -1, right = -1;  // further keys are not seen; -1: no limit
};

// Which numbers the optional output of scores has.
enum class ScoreStage { kRaw, kCapped, kBiased, kProbabilities };

// Checks that q_heads is a positive multiple of kv_heads.
absl::Status CheckHeads(int64_t q_heads, int64_t kv_heads);

template <typename T>
struct AttentionCall {
  AttentionShape shape;
  HeadRows<const T> q = {}, k = {}, v = {};
  HeadRows<T> y = {};
  double scale = 1;
  double softcap = 0;  // 0: none
  std::vector<ScoreBias> biases = {};
  KeyVisibility visible = {};
  // One more logit a head, which takes its share and gives nothing; or empty.
  std::vector<float> sinks = {};
  // Scores are rounded to this type before the softmax and probabilities after
  // it; kUndefined: neither.
  ir::DataType softmax_type = ir::DataType::kUndefined;
  T* scores = nullptr;  // [batch, q_heads, q_rows, kv_rows], if wanted
  ScoreStage stage = ScoreStage::kRaw;
};

// For float, double, Half, BFloat16. A query that sees no key has a zero row.
template <typename T>
absl::Status RunAttention(OpContext& op, const AttentionCall<T>& call);

// Sum of a[i] * b[i] in 16 lanes, element i in lane i mod 16.
template <typename C>
C Dot(const C* a, const C* b, int64_t count) {
  constexpr int64_t kLanes = 16;
  C lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] += a[i + k] * b[i + k];
  }
  for (int64_t k = 0; i + k < count; ++k) lanes[k] += a[i + k] * b[i + k];
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  }
  return lanes[0];
}

// Smaller products are not worth the call of Gemm.
inline bool IsWorthGemm(int64_t m, int64_t n, int64_t k) {
  return m >= 8 && n >= 8 && k >= 8 && m * n * k >= 32768;
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_ATTENTION_CORE_H_
