// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft GroupQueryAttention: attention with rotary embedding, norms of
// queries and keys, and a cache of keys and values.
//
// A batch entry b has total = seqlens_k[b] + 1 tokens after the step; `added`
// of them are the first rows of query, key and value, and the others are in the
// cache. The cache is [batch, kv_heads, capacity, size]: with room for all
// (then present may be past's own buffer), growing, or a window
// (sliding_window_cache), whose resident tokens are moved to its front.
// Rows of the cache that hold no token keep what was there, or are zero; rows
// of y for padded queries are zero (ONNX Runtime leaves both unspecified).
//
// Roundings: the norms of queries and keys and their rotation are each rounded
// once to the tensors' type, as is y; the rest is in attention_core.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/grain.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/ops/attention_core.h"
#include "runtime/ops/attention_ops.h"
#include "runtime/ops/gqa_plan.h"
#include "runtime/ops/rotary.h"

namespace addnorm::runtime {
namespace {

enum Result : size_t { kY, kPresentKey, kPresentValue };

// y = round(x / sqrt(mean(x²) + epsilon) * weight), with the mean's sum in 32
// lanes; y may be x.
template <typename T>
void NormaliseRow(const T* x, const T* weight, float epsilon, int64_t size,
                  T* y) {
  const float mean =
      SumOfSquaresRow(x, static_cast<size_t>(size)) / static_cast<float>(size);
  const float factor = 1 / std::sqrt(mean + epsilon);
  for (int64_t i = 0; i < size; ++i)
    y[i] = Rounded<T>(Widen(x[i]) * factor * Widen(weight[i]));
}

template <typename T>
class Step {
 public:
  Step(OpContext& op, const GqaPlan& plan)
      : op_(op), plan_(plan), s_(plan.shape) {
    const T* query = op.input(kQuery).data<T>();
    const int64_t size = s_.head_size;
    const int64_t q_width = Stride(s_.q_heads, size);
    const int64_t kv_width = Stride(s_.kv_heads, size);
    const int64_t width = plan.packed ? q_width + 2 * kv_width : q_width;
    query_ = RowMajor(query, s_.q_rows, size, width);
    key_ = plan.packed
               ? RowMajor(query + q_width, s_.q_rows, size, width)
               : RowMajor(op.input(kKey).data<T>(), s_.q_rows, size, kv_width);
    value_ =
        plan.packed
            ? RowMajor(query + q_width + kv_width, s_.q_rows, size, width)
            : RowMajor(op.input(kValue).data<T>(), s_.q_rows, size, kv_width);
  }

  absl::Status Run();

 private:
  bool transforms() const {
    return plan_.rotation.half > 0 || op_.has_input(kQueryNorm);
  }
  // The norm and the rotation of one row of queries or keys.
  void Transform(const T* from, GqaOperand norm, int64_t batch, int64_t row,
                 T* to) const;
  absl::Status TransformQueries();
  // Puts together the rows that attention reads: those in the past, then the
  // new ones; and makes the present.
  absl::StatusOr<HeadRows<const T>> UpdateCache(GqaOperand past,
                                                Result present);
  void StageRows(const T* past, bool keys, int64_t batch, int64_t head,
                 T* to) const;
  absl::StatusOr<HeadRows<const T>> UpdateWindow(GqaOperand past,
                                                 Result present);
  KeyVisibility Visibility() const;
  absl::Status AddBias(AttentionCall<T>& call) const;
  void AddSinks(AttentionCall<T>& call) const;
  // Calls f(batch, head, [batch, head] in heads of that many rows).
  template <typename F>
  void ForHeads(int64_t heads, int64_t rows, F&& f) const;

  OpContext& op_;
  const GqaPlan& plan_;
  const AttentionShape& s_;
  HeadRows<const T> query_, key_, value_;
  Tensor queries_, staged_[2];
};

template <typename T>
template <typename F>
void Step<T>::ForHeads(int64_t heads, int64_t rows, F&& f) const {
  if (s_.head_size == 0 || rows == 0) return;
  op_.threads().ParallelFor(s_.batch * heads, LineGrain(rows * s_.head_size),
                            [&](int64_t begin, int64_t end) {
                              for (int64_t i = begin; i < end; ++i)
                                f(i / heads, i % heads);
                            });
}

template <typename T>
void Step<T>::Transform(const T* from, GqaOperand norm, int64_t batch,
                        int64_t row, T* to) const {
  if (op_.has_input(norm)) {
    const Attributes& attributes = op_.attributes();
    const float epsilon = attributes.Float(
        norm == kQueryNorm ? "q_norm_epsilon" : "k_norm_epsilon",
        attributes.Float("qk_norm_epsilon", 1e-6F));
    NormaliseRow(from, op_.input(norm).data<T>(), epsilon, s_.head_size, to);
    from = to;
  }
  const int64_t half = plan_.rotation.half;
  if (half == 0) {
    if (from != to) std::copy_n(from, s_.head_size, to);
    return;
  }
  const int64_t angles = plan_.Position(batch, row) * half;
  RotateRow(plan_.rotation, from, op_.input(kCos).data<T>() + angles,
            op_.input(kSin).data<T>() + angles, to);
}

template <typename T>
absl::Status Step<T>::TransformQueries() {
  if (!transforms()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      queries_,
      op_.Scratch(kTypeOf<T>, {s_.batch, s_.q_heads, s_.q_rows, s_.head_size}));
  const HeadRows<T> to = HeadMajor(queries_.mutable_data<T>(), s_.q_heads,
                                   s_.q_rows, s_.head_size);
  ForHeads(s_.q_heads, s_.q_rows, [&](int64_t batch, int64_t head) {
    for (int64_t row = 0; row < s_.q_rows; ++row) {
      if (row < plan_.entries[batch].added) {
        Transform(query_.At(batch, head, row), kQueryNorm, batch, row,
                  to.At(batch, head, row));
      } else {  // padding, which may have no position
        std::fill_n(to.At(batch, head, row), s_.head_size, T{});
      }
    }
  });
  query_ = {to.data, to.batch_stride, to.head_stride, to.row_stride};
  return absl::OkStatus();
}

// `to` may be past's own rows.
template <typename T>
void Step<T>::StageRows(const T* past, bool keys, int64_t batch, int64_t head,
                        T* to) const {
  const GqaEntry& entry = plan_.entries[batch];
  const int64_t size = s_.head_size;
  if (past != to && entry.resident > 0)
    std::copy_n(past, entry.resident * size, to);
  to += entry.resident * size;
  for (int64_t row = 0; row < entry.added; ++row, to += size) {
    if (keys) {
      Transform(key_.At(batch, head, row), kKeyNorm, batch, row, to);
    } else {
      std::copy_n(value_.At(batch, head, row), size, to);
    }
  }
}

template <typename T>
absl::StatusOr<HeadRows<const T>> Step<T>::UpdateCache(GqaOperand past,
                                                       Result present) {
  if (plan_.windowed) return UpdateWindow(past, present);
  const int64_t size = s_.head_size, capacity = plan_.capacity;
  ASSIGN_OR_RETURN(
      Tensor * to,
      op_.Output(present, kTypeOf<T>, {s_.batch, s_.kv_heads, capacity, size}));
  T* const data = to->mutable_data<T>();
  const T* const old =
      op_.has_input(past) ? op_.input(past).data<T>() : nullptr;
  ForHeads(s_.kv_heads, capacity, [&](int64_t batch, int64_t head) {
    const int64_t index = batch * s_.kv_heads + head;
    T* rows = data + index * capacity * size;
    const T* from = old + index * plan_.past_capacity * size;
    const int64_t used = plan_.entries[batch].rows() * size;
    const int64_t given = plan_.past_capacity * size;
    if (old != data) {  // else the rows are there
      const int64_t kept = std::max(used, given);
      if (used < given) std::copy(from + used, from + given, rows + used);
      std::fill(rows + kept, rows + capacity * size, T{});
    }
    StageRows(from, past == kPastKey, batch, head, rows);
  });
  return HeadMajor(static_cast<const T*>(data), s_.kv_heads, capacity, size);
}

template <typename T>
absl::StatusOr<HeadRows<const T>> Step<T>::UpdateWindow(GqaOperand past,
                                                        Result present) {
  const int64_t size = s_.head_size, capacity = plan_.capacity;
  Tensor& staged = staged_[past == kPastKey ? 0 : 1];
  ASSIGN_OR_RETURN(staged, op_.Scratch(kTypeOf<T>, {s_.batch, s_.kv_heads,
                                                    s_.kv_rows, size}));
  ASSIGN_OR_RETURN(
      Tensor * to,
      op_.Output(present, kTypeOf<T>, {s_.batch, s_.kv_heads, capacity, size}));
  const T* const old = op_.input(past).data<T>();
  T* const data = to->mutable_data<T>();
  T* const rows = staged.mutable_data<T>();
  ForHeads(s_.kv_heads, capacity + s_.kv_rows,
           [&](int64_t batch, int64_t head) {
             const int64_t index = batch * s_.kv_heads + head;
             const GqaEntry& entry = plan_.entries[batch];
             T* all = rows + index * s_.kv_rows * size;
             const T* from = old + index * capacity * size;
             T* result = data + index * capacity * size;
             StageRows(from, past == kPastKey, batch, head, all);
             if (from != result)
               std::copy(from + entry.kept * size, from + capacity * size,
                         result + entry.kept * size);
             std::copy_n(all + (entry.rows() - entry.kept) * size,
                         entry.kept * size, result);
           });
  return HeadMajor(static_cast<const T*>(rows), s_.kv_heads, s_.kv_rows, size);
}

template <typename T>
KeyVisibility Step<T>::Visibility() const {
  KeyVisibility visible;
  visible.causal = op_.attributes().Int("causal", 1) != 0;
  // The window counts the token itself.
  if (plan_.window > 0) visible.left = plan_.window - 1;
  for (const GqaEntry& entry : plan_.entries) {
    visible.first_query.push_back(entry.old_tokens());
    visible.first_key.push_back(entry.old_tokens() - entry.resident);
    visible.query_count.push_back(entry.added);
    visible.key_count.push_back(entry.rows());
  }
  return visible;
}

template <typename T>
absl::Status Step<T>::AddBias(AttentionCall<T>& call) const {
  if (!op_.has_input(kBias)) return absl::OkStatus();
  ASSIGN_OR_RETURN(ScoreBias bias,
                   MakeScoreBias(op_.input(kBias), s_, plan_.total_length,
                                 /*broadcast_columns=*/false));
  call.biases.push_back(bias);
  return absl::OkStatus();
}

template <typename T>
void Step<T>::AddSinks(AttentionCall<T>& call) const {
  if (op_.has_input(kSinks)) {
    for (const T sink : op_.input(kSinks).elements<T>())
      call.sinks.push_back(static_cast<float>(Widen(sink)));
  } else if (op_.attributes().Int("smooth_softmax", 0) > 0) {
    call.sinks.assign(static_cast<size_t>(s_.q_heads), 0);
  }
}

template <typename T>
absl::Status Step<T>::Run() {
  AttentionCall<T> call{.shape = s_};
  ASSIGN_OR_RETURN(Tensor * y, op_.Output(kY, kTypeOf<T>,
                                          {s_.batch, s_.q_rows,
                                           Stride(s_.q_heads, s_.head_size)}));
  call.y = RowMajor(y->mutable_data<T>(), s_.q_rows, s_.head_size,
                    Stride(s_.q_heads, s_.head_size));
  RETURN_IF_ERROR(TransformQueries());
  call.q = query_;
  ASSIGN_OR_RETURN(call.k, UpdateCache(kPastKey, kPresentKey));
  ASSIGN_OR_RETURN(call.v, UpdateCache(kPastValue, kPresentValue));
  if (y->count() == 0) return absl::OkStatus();
  call.scale = op_.attributes().Float("scale", 0);
  if (call.scale == 0)
    call.scale = 1 / std::sqrt(static_cast<double>(s_.head_size));
  call.softcap = op_.attributes().Float("softcap", 0);
  call.visible = Visibility();
  RETURN_IF_ERROR(AddBias(call));
  AddSinks(call);
  return RunAttention(op_, call);
}

}  // namespace

absl::Status GroupQueryAttention(OpContext& op) {
  ASSIGN_OR_RETURN(const GqaPlan plan, MakeGqaPlan(op));
  return op.ForType<float, Half, BFloat16>(
      op.input(kQuery), [&]<typename T>() { return Step<T>(op, plan).Run(); });
}

}  // namespace addnorm::runtime
