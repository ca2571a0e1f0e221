// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/attention_core.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "passes/ir/status_macros.h"
#include "runtime/gemm.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/ops/softmax_row.h"

namespace addnorm::runtime {
namespace {

// Query rows whose scores are held at once; those of all heads that share a
// head of keys follow one another, so that keys are read (and widened) once for
// them. Fixed, not by thread count: Gemm's bits may depend on how many rows it
// is given.
constexpr int64_t kBlockRows = 64;

struct KeyRange {
  int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

int64_t At(const std::vector<int64_t>& values, int64_t i, int64_t fallback) {
  return values.empty() ? fallback : values[static_cast<size_t>(i)];
}

// The key rows that a query row sees.
KeyRange VisibleKeys(const KeyVisibility& visible, const AttentionShape& shape,
                     int64_t batch, int64_t row) {
  if (row >= At(visible.query_count, batch, shape.q_rows)) return {};
  const int64_t position = At(visible.first_query, batch, visible.past_rows) +
                           row - At(visible.first_key, batch, 0);
  KeyRange range{
      0, std::min(At(visible.key_count, batch, shape.kv_rows), shape.kv_rows)};
  if (visible.causal) range.end = std::min(range.end, position + 1);
  // Differences, because a limit may be as large as an integer can be.
  if (visible.right >= 0 && visible.right < range.end - position)
    range.end = position + visible.right + 1;
  if (visible.left >= 0 && visible.left < position)
    range.begin = position - visible.left;
  return range;
}

template <typename C>
constexpr C kMasked = -std::numeric_limits<C>::infinity();

// One thread's work on blocks of query rows, and the memory it needs for it.
template <typename T>
class BlockRunner {
 public:
  using C = ComputeType<T>;

  BlockRunner(OpContext& op, const AttentionCall<T>& call)
      : op_(op),
        call_(call),
        shape_(call.shape),
        group_(shape_.q_heads / shape_.kv_heads),
        max_rows_(std::min(kBlockRows, group_ * shape_.q_rows)) {}

  absl::Status Allocate();
  absl::Status Run(int64_t batch, int64_t kv_head, int64_t first);

 private:
  static constexpr bool kWidens = !std::is_same_v<T, C>;

  // The query that row `i` of the block stands for.
  ScoreRow Query(int64_t i) const {
    const int64_t index = first_ + i;
    return {batch_, kv_head_ * group_ + index / shape_.q_rows,
            index % shape_.q_rows};
  }
  KeyRange KeysOfBlock() const;
  void LoadQuery();
  // The rows of k or v in that range as C, and the distance between them.
  const C* Load(const HeadRows<const T>& rows, int64_t size, int64_t* stride);
  absl::Status ComputeScores();
  absl::Status ComputeResult();
  void FinishRow(int64_t row);
  // False if the biases mask all visible keys.
  bool AddBiases(int64_t row, KeyRange visible);
  void Softmax(int64_t row, KeyRange visible);
  void EmitScores(ScoreStage stage, int64_t row);
  C* scores_of(int64_t row) {
    return scores_ + row * (keys_.end - keys_.begin);
  }

  OpContext& op_;
  const AttentionCall<T>& call_;
  const AttentionShape& shape_;
  const int64_t group_, max_rows_;
  Tensor memory_[5];
  C *query_ = nullptr, *scores_ = nullptr, *bias_ = nullptr, *wide_ = nullptr,
    *result_ = nullptr;
  // Of the block.
  int64_t batch_ = 0, kv_head_ = 0, first_ = 0, rows_ = 0;
  KeyRange keys_;
};

template <typename T>
absl::Status BlockRunner<T>::Allocate() {
  const int64_t wide = std::max(shape_.head_size, shape_.v_head_size);
  const Dims dims[] = {{max_rows_, shape_.head_size},
                       {max_rows_, shape_.kv_rows},
                       {shape_.kv_rows},
                       {kWidens ? shape_.kv_rows : 0, wide},
                       {max_rows_, shape_.v_head_size}};
  C** const pointers[] = {&query_, &scores_, &bias_, &wide_, &result_};
  for (size_t i = 0; i < std::size(dims); ++i) {
    ASSIGN_OR_RETURN(memory_[i], op_.Scratch(kTypeOf<C>, dims[i]));
    *pointers[i] = memory_[i].template mutable_data<C>();
  }
  return absl::OkStatus();
}

template <typename T>
KeyRange BlockRunner<T>::KeysOfBlock() const {
  if (call_.scores != nullptr) return {0, shape_.kv_rows};
  KeyRange all;
  for (int64_t row = 0; row < rows_; ++row) {
    const KeyRange range =
        VisibleKeys(call_.visible, shape_, batch_, Query(row).row);
    if (range.empty()) continue;
    if (all.empty()) {
      all = range;
    } else {
      all = {std::min(all.begin, range.begin), std::max(all.end, range.end)};
    }
  }
  return all;
}

template <typename T>
absl::Status BlockRunner<T>::Run(int64_t batch, int64_t kv_head,
                                 int64_t first) {
  batch_ = batch;
  kv_head_ = kv_head;
  first_ = first;
  rows_ = std::min(max_rows_, group_ * shape_.q_rows - first);
  keys_ = KeysOfBlock();
  LoadQuery();
  RETURN_IF_ERROR(ComputeScores());
  for (int64_t row = 0; row < rows_; ++row) FinishRow(row);
  RETURN_IF_ERROR(ComputeResult());
  for (int64_t row = 0; row < rows_; ++row) {
    const ScoreRow query = Query(row);
    T* y = call_.y.At(batch_, query.head, query.row);
    const auto size = static_cast<size_t>(shape_.v_head_size);
    RoundRow(result_ + row * shape_.v_head_size, y, size);
  }
  return absl::OkStatus();
}

template <typename T>
void BlockRunner<T>::LoadQuery() {
  const C scale = static_cast<C>(call_.scale);
  for (int64_t row = 0; row < rows_; ++row) {
    const ScoreRow query = Query(row);
    const T* q = call_.q.At(batch_, query.head, query.row);
    C* to = query_ + row * shape_.head_size;
    WidenRow(q, to, static_cast<size_t>(shape_.head_size));
    for (int64_t i = 0; i < shape_.head_size; ++i) to[i] *= scale;
  }
}

template <typename T>
auto BlockRunner<T>::Load(const HeadRows<const T>& rows, int64_t size,
                          int64_t* stride) -> const C* {
  const T* from = rows.At(batch_, kv_head_, keys_.begin);
  if constexpr (!kWidens) {
    *stride = rows.row_stride;
    return from;
  } else {
    *stride = size;
    for (int64_t row = 0; row < keys_.end - keys_.begin; ++row) {
      WidenRow(from + row * rows.row_stride, wide_ + row * size,
               static_cast<size_t>(size));
    }
    return wide_;
  }
}

template <typename T>
absl::Status BlockRunner<T>::ComputeScores() {
  const int64_t count = keys_.end - keys_.begin, size = shape_.head_size;
  int64_t stride = 0;
  const C* keys = Load(call_.k, size, &stride);
  if constexpr (std::is_same_v<C, float>) {
    if (IsWorthGemm(rows_, count, size)) {
      return Gemm({.m = rows_,
                   .n = count,
                   .k = size,
                   .transpose_b = true,
                   .ldb = stride},
                  query_, keys, scores_, op_.threads());
    }
  }
  for (int64_t row = 0; row < rows_; ++row) {
    for (int64_t key = 0; key < count; ++key) {
      scores_of(row)[key] = Dot(query_ + row * size, keys + key * stride, size);
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status BlockRunner<T>::ComputeResult() {
  const int64_t count = keys_.end - keys_.begin, size = shape_.v_head_size;
  int64_t stride = 0;
  const C* values = Load(call_.v, size, &stride);
  if constexpr (std::is_same_v<C, float>) {
    if (IsWorthGemm(rows_, size, count)) {
      return Gemm({.m = rows_, .n = size, .k = count, .ldb = stride}, scores_,
                  values, result_, op_.threads());
    }
  }
  std::fill_n(result_, rows_ * size, C{0});
  for (int64_t row = 0; row < rows_; ++row) {
    C* to = result_ + row * size;
    for (int64_t key = 0; key < count; ++key) {
      const C share = scores_of(row)[key];
      const C* value = values + key * stride;
      for (int64_t i = 0; i < size; ++i) to[i] += share * value[i];
    }
  }
  return absl::OkStatus();
}

// From raw scores to probabilities.
template <typename T>
void BlockRunner<T>::FinishRow(int64_t row) {
  const int64_t count = keys_.end - keys_.begin;
  C* scores = scores_of(row);
  EmitScores(ScoreStage::kRaw, row);
  if (call_.softcap != 0) {
    const C cap = static_cast<C>(call_.softcap);
    for (int64_t i = 0; i < count; ++i)
      scores[i] = cap * std::tanh(scores[i] / cap);
  }
  EmitScores(ScoreStage::kCapped, row);
  KeyRange visible = VisibleKeys(call_.visible, shape_, batch_, Query(row).row);
  const bool sees_keys = !visible.empty() && AddBiases(row, visible);
  if (visible.empty()) visible = {keys_.begin, keys_.begin};
  visible = {visible.begin - keys_.begin, visible.end - keys_.begin};
  std::fill_n(scores, visible.begin, kMasked<C>);
  std::fill(scores + visible.end, scores + count, kMasked<C>);
  EmitScores(ScoreStage::kBiased, row);
  std::fill_n(scores, visible.begin, C{0});
  std::fill(scores + visible.end, scores + count, C{0});
  if (sees_keys) {
    Softmax(row, visible);
  } else {
    std::fill_n(scores, count, C{0});
  }
  EmitScores(ScoreStage::kProbabilities, row);
}

template <typename T>
bool BlockRunner<T>::AddBiases(int64_t row, KeyRange visible) {
  if (call_.biases.empty()) return true;
  const int64_t count = visible.end - visible.begin;
  const int64_t column = visible.begin + At(call_.visible.first_key, batch_, 0);
  std::fill_n(bias_, count, C{0});
  for (const ScoreBias& bias : call_.biases)
    AddBiasRow(bias, Query(row), column, count, bias_);
  C* scores = scores_of(row) + (visible.begin - keys_.begin);
  bool sees_keys = false;
  for (int64_t i = 0; i < count; ++i) {
    scores[i] += bias_[i];
    sees_keys |= bias_[i] != kMasked<C>;
  }
  return sees_keys;
}

template <typename T>
void BlockRunner<T>::Softmax(int64_t index, KeyRange visible) {
  C* const row = scores_of(index) + visible.begin;
  const int64_t count = visible.end - visible.begin;
  const float* sink =
      call_.sinks.empty()
          ? nullptr
          : &call_.sinks[static_cast<size_t>(Query(index).head)];
  switch (call_.softmax_type) {
    case ir::DataType::kFloat16:
      return SoftmaxRow<C, Half>(row, count, sink);
    case ir::DataType::kBFloat16:
      return SoftmaxRow<C, BFloat16>(row, count, sink);
    case ir::DataType::kFloat:
      return SoftmaxRow<C, float>(row, count, sink);
    case ir::DataType::kDouble:
      return SoftmaxRow<C, double>(row, count, sink);
    default:
      return SoftmaxRow<C, C>(row, count, sink);
  }
}

template <typename T>
void BlockRunner<T>::EmitScores(ScoreStage stage, int64_t row) {
  if (call_.scores == nullptr || call_.stage != stage) return;
  const ScoreRow query = Query(row);
  const int64_t index =
      (batch_ * shape_.q_heads + query.head) * shape_.q_rows + query.row;
  T* to = call_.scores + index * shape_.kv_rows;
  const C* from = scores_of(row);
  RoundRow(from, to, static_cast<size_t>(shape_.kv_rows));
}

}  // namespace

absl::Status CheckHeads(int64_t q_heads, int64_t kv_heads) {
  if (q_heads > 0 && kv_heads > 0 && q_heads % kv_heads == 0)
    return absl::OkStatus();
  return OpContext::Invalid(
      "{} heads of queries are no positive multiple of {} heads of keys",
      q_heads, kv_heads);
}

template <typename T>
absl::Status RunAttention(OpContext& op, const AttentionCall<T>& call) {
  const AttentionShape& shape = call.shape;
  if (shape.batch == 0 || shape.q_rows == 0) return absl::OkStatus();
  if (shape.v_head_size == 0 && (call.scores == nullptr || shape.kv_rows == 0))
    return absl::OkStatus();
  const int64_t rows = shape.q_heads / shape.kv_heads * shape.q_rows;
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  const double work = static_cast<double>(std::min(kBlockRows, rows)) *
                      static_cast<double>(shape.kv_rows + 1) *
                      static_cast<double>(shape.head_size + 1);
  const auto run = [&](int64_t begin, int64_t end) {
    BlockRunner<T> runner(op, call);
    RETURN_IF_ERROR(runner.Allocate());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i / blocks;
      RETURN_IF_ERROR(runner.Run(head / shape.kv_heads, head % shape.kv_heads,
                                 i % blocks * kBlockRows));
    }
    return absl::OkStatus();
  };
  return op.threads().TryParallelFor(
      shape.batch * shape.kv_heads * blocks,
      std::max<int64_t>(1, static_cast<int64_t>(32768 / work)), run);
}

template absl::Status RunAttention(OpContext&, const AttentionCall<float>&);
template absl::Status RunAttention(OpContext&, const AttentionCall<double>&);
template absl::Status RunAttention(OpContext&, const AttentionCall<Half>&);
template absl::Status RunAttention(OpContext&, const AttentionCall<BFloat16>&);

}  // namespace addnorm::runtime
