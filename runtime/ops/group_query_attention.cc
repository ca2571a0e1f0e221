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
#include <string>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/ops/attention_core.h"
#include "runtime/ops/attention_ops.h"
#include "runtime/ops/rotary.h"

namespace addnorm::runtime {
namespace {

enum Operand : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotalLength,
  kCos,
  kSin,
  kPositions,
  kBias,
  kSinks,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm,
  kQueryLengths
};
enum Result : size_t { kY, kPresentKey, kPresentValue };

// The cache of one batch entry before and after the step.
struct Entry {
  int64_t total = 0;     // tokens after the step
  int64_t added = 0;     // by the step
  int64_t resident = 0;  // tokens in the past's rows: the last ones
  int64_t kept = 0;      // tokens in the present's rows: the last ones
  int64_t old_tokens() const { return total - added; }
  int64_t rows() const { return resident + added; }  // that attention reads
};

struct Plan {
  AttentionShape shape;  // kv_rows: the most rows of any entry
  bool packed = false;   // query holds keys and values too
  bool windowed = false;
  int64_t window = -1;
  int64_t total_length = 0;
  int64_t past_capacity = 0, capacity = 0;
  std::vector<Entry> entries;
  std::vector<int64_t> positions;  // [batch, q_rows], or empty
  Rotation rotation;               // half is 0 without rotation
};

absl::Status RejectUnsupported(const OpContext& op) {
  const Attributes& attributes = op.attributes();
  if (attributes.Int("qk_output", 0) != 0)
    return OpContext::Unsupported("qk_output is not supported");
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    const std::string type = attributes.String(name, "NONE");
    if (type != "NONE")
      return OpContext::Unsupported("{} '{}' is not supported", name, type);
  }
  for (const Operand i : {kKeyScale, kValueScale}) {
    if (op.has_input(i))
      return OpContext::Unsupported(
          "operand {} (a scale of the cache) is not "
          "supported",
          static_cast<size_t>(i));
  }
  const ir::DataType type = op.input(kQuery).type();
  for (const Operand i : {kKey, kValue, kPastKey, kPastValue, kCos, kSin,
                          kSinks, kQueryNorm, kKeyNorm}) {
    if (op.has_input(i) && op.input(i).type() != type) {
      return OpContext::Unsupported(
          "operand {} is {}, and the query {}", static_cast<size_t>(i),
          Describe(op.input(i)), Describe(op.input(kQuery)));
    }
  }
  return absl::OkStatus();
}

// Heads and sizes, from query, key and value.
absl::Status ReadShape(const OpContext& op, Plan& plan) {
  AttentionShape& s = plan.shape;
  s.q_heads = op.attributes().Int("num_heads", 0);
  s.kv_heads = op.attributes().Int("kv_num_heads", 0);
  RETURN_IF_ERROR(CheckHeads(s.q_heads, s.kv_heads));
  const Tensor& query = op.input(kQuery);
  plan.packed = !op.has_input(kKey);
  if (plan.packed == op.has_input(kValue))
    return OpContext::Invalid("key and value must be given together");
  int64_t heads = s.q_heads;
  if (plan.packed && (__builtin_add_overflow(heads, s.kv_heads, &heads) ||
                      __builtin_add_overflow(heads, s.kv_heads, &heads)))
    return OpContext::Invalid("there are too many heads");
  if (query.rank() != 3 || query.dims()[2] % heads != 0) {
    return OpContext::Invalid("the query {} cannot be cut into {} heads",
                              Describe(query), heads);
  }
  s.batch = query.dims()[0];
  s.q_rows = query.dims()[1];
  s.head_size = s.v_head_size = query.dims()[2] / heads;
  for (const Operand i : {kKey, kValue}) {
    const Dims expected = {s.batch, s.q_rows, Stride(s.kv_heads, s.head_size)};
    if (!plan.packed && op.input(i).dims() != expected)
      return OpContext::Invalid(
          "{} is given for the keys or values, expected "
          "{}",
          Describe(op.input(i)), ToString(expected));
  }
  return absl::OkStatus();
}

absl::Status ReadPast(const OpContext& op, Plan& plan) {
  const AttentionShape& s = plan.shape;
  if (op.has_input(kPastKey) != op.has_input(kPastValue))
    return OpContext::Invalid("past_key and past_value must be given together");
  plan.windowed = op.attributes().Int("sliding_window_cache", 0) != 0;
  plan.window = op.attributes().Int("local_window_size", -1);
  if (plan.window < -1 || plan.window == 0)
    return OpContext::Invalid("local_window_size is {}", plan.window);
  if (!op.has_input(kPastKey)) {
    if (plan.windowed)
      return OpContext::Invalid("sliding_window_cache needs past_key");
    return absl::OkStatus();
  }
  const Tensor& past = op.input(kPastKey);
  plan.past_capacity = past.rank() == 4 ? past.dims()[2] : 0;
  const Dims expected = {s.batch, s.kv_heads, plan.past_capacity, s.head_size};
  for (const Operand i : {kPastKey, kPastValue}) {
    if (op.input(i).dims() != expected)
      return OpContext::Invalid("the past is {}, expected {}",
                                Describe(op.input(i)), ToString(expected));
  }
  if (plan.windowed && (plan.window < 1 || plan.window > plan.past_capacity)) {
    return OpContext::Invalid("a cache of {} rows cannot hold the window of {}",
                              plan.past_capacity, plan.window);
  }
  return absl::OkStatus();
}

// How many of the last tokens a windowed cache holds after `total` tokens:
// whenever it is full, capacity - window + 1 rows are freed at once.
int64_t ResidentTokens(const Plan& plan, int64_t total) {
  const int64_t capacity = plan.past_capacity;
  if (!plan.windowed || total <= capacity) return total;
  const int64_t step = capacity - plan.window + 1;
  return total - step * ((total - capacity + step - 1) / step);
}

absl::Status CheckEntry(const Plan& plan, const Entry& entry) {
  if (entry.total < 0 || entry.total > plan.total_length || entry.added < 0 ||
      entry.added > std::min(plan.shape.q_rows, entry.total)) {
    return OpContext::Invalid(
        "{} tokens, {} of them new, with {} rows of queries and "
        "total_sequence_length {}",
        entry.total, entry.added, plan.shape.q_rows, plan.total_length);
  }
  if (entry.resident > plan.past_capacity) {
    return OpContext::Invalid("{} earlier tokens in a cache of {} rows",
                              entry.resident, plan.past_capacity);
  }
  return absl::OkStatus();
}

absl::Status ReadEntries(const OpContext& op, Plan& plan) {
  AttentionShape& s = plan.shape;
  ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, op.Ints(kLengths));
  ASSIGN_OR_RETURN(const std::vector<int64_t> total, op.Ints(kTotalLength));
  const auto batch = static_cast<size_t>(s.batch);
  if (lengths.size() != batch || total.size() != 1 || total[0] < 0) {
    return OpContext::Invalid(
        "seqlens_k is {} and total_sequence_length {}, expected [{}] and one "
        "length",
        Describe(op.input(kLengths)), Describe(op.input(kTotalLength)), batch);
  }
  plan.total_length = total[0];
  std::vector<int64_t> added;
  if (op.has_input(kQueryLengths)) {
    ASSIGN_OR_RETURN(added, op.Ints(kQueryLengths));
    if (added.size() != batch)
      return OpContext::Invalid("query_seqlens is {}, expected [{}]",
                                Describe(op.input(kQueryLengths)), batch);
  }
  // Room for tokens that come later is the caller's to make, in the past.
  if (!plan.windowed && added.empty() &&
      plan.total_length - s.q_rows > plan.past_capacity) {
    return OpContext::Invalid(
        "total_sequence_length {} with {} new tokens and a cache of {} rows",
        plan.total_length, s.q_rows, plan.past_capacity);
  }
  plan.capacity = plan.windowed
                      ? plan.past_capacity
                      : std::max(plan.past_capacity, plan.total_length);
  for (size_t b = 0; b < batch; ++b) {
    if (lengths[b] < -1 || lengths[b] >= plan.total_length)
      return OpContext::Invalid(
          "seqlens_k has {} with total_sequence_length {}", lengths[b],
          plan.total_length);
    Entry entry{.total = lengths[b] + 1};
    entry.added = added.empty() ? std::min(s.q_rows, entry.total) : added[b];
    entry.resident = ResidentTokens(plan, entry.total - entry.added);
    entry.kept = ResidentTokens(plan, entry.total);
    RETURN_IF_ERROR(CheckEntry(plan, entry));
    s.kv_rows = std::max(s.kv_rows, entry.rows());
    plan.entries.push_back(entry);
  }
  // Without a window all rows are in the present, which is read.
  if (!plan.windowed) s.kv_rows = plan.capacity;
  return absl::OkStatus();
}

int64_t Position(const Plan& plan, int64_t batch, int64_t row) {
  const auto b = static_cast<size_t>(batch);
  return plan.positions.empty() ? plan.entries[b].old_tokens() + row
                                : plan.positions[b * plan.shape.q_rows + row];
}

absl::Status ReadRotation(const OpContext& op, Plan& plan) {
  const AttentionShape& s = plan.shape;
  plan.rotation.size = s.head_size;
  if (op.attributes().Int("do_rotary", 0) == 0) return absl::OkStatus();
  const Tensor& cos = op.input(kCos);
  const Tensor& sin = op.input(kSin);
  if (cos.is_absent() || sin.is_absent() || cos.rank() != 2 ||
      cos.dims() != sin.dims() || cos.dims()[1] > s.head_size / 2) {
    return OpContext::Invalid("caches {} and {} do not fit heads of {}",
                              Describe(cos), Describe(sin), s.head_size);
  }
  plan.rotation.half = cos.dims()[1];
  plan.rotation.interleaved = op.attributes().Int("rotary_interleaved", 0) != 0;
  if (op.has_input(kPositions)) {
    if (op.input(kPositions).dims() != Dims{s.batch, s.q_rows})
      return OpContext::Invalid("position_ids is {}, expected [{},{}]",
                                Describe(op.input(kPositions)), s.batch,
                                s.q_rows);
    ASSIGN_OR_RETURN(plan.positions, op.Ints(kPositions));
  }
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t row = 0; row < plan.entries[b].added; ++row) {
      const int64_t position = Position(plan, b, row);
      if (position < 0 || position >= cos.dims()[0])
        return OpContext::Invalid("position {} is not in the cache {}",
                                  position, Describe(cos));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Plan> MakePlan(const OpContext& op) {
  if (!op.has_input(kQuery) || !op.has_input(kLengths) ||
      !op.has_input(kTotalLength))
    return OpContext::Invalid(
        "query, seqlens_k or total_sequence_length is missing");
  RETURN_IF_ERROR(RejectUnsupported(op));
  Plan plan;
  RETURN_IF_ERROR(ReadShape(op, plan));
  RETURN_IF_ERROR(ReadPast(op, plan));
  RETURN_IF_ERROR(ReadEntries(op, plan));
  RETURN_IF_ERROR(ReadRotation(op, plan));
  for (const Operand i : {kQueryNorm, kKeyNorm}) {
    if (op.has_input(kQueryNorm) != op.has_input(kKeyNorm) ||
        (op.has_input(i) && op.input(i).dims() != Dims{plan.shape.head_size}))
      return OpContext::Invalid(
          "the norms' weights are {} and {}, expected "
          "[{}]",
          Describe(op.input(kQueryNorm)), Describe(op.input(kKeyNorm)),
          plan.shape.head_size);
  }
  return plan;
}

// y = round(x / sqrt(mean(x²) + epsilon) * weight), with the mean's sum in 32
// lanes; y may be x.
template <typename T>
void NormaliseRow(const T* x, const T* weight, float epsilon, int64_t size,
                  T* y) {
  std::array<float, 32> lanes = {};
  for (int64_t i = 0; i < size; ++i)
    lanes[static_cast<size_t>(i % 32)] += Widen(x[i]) * Widen(x[i]);
  for (size_t half = 16; half > 0; half /= 2) {
    for (size_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  }
  const float mean = lanes[0] / static_cast<float>(size);
  const float factor = 1 / std::sqrt(mean + epsilon);
  for (int64_t i = 0; i < size; ++i)
    y[i] = Rounded<T>(Widen(x[i]) * factor * Widen(weight[i]));
}

template <typename T>
class Step {
 public:
  Step(OpContext& op, const Plan& plan) : op_(op), plan_(plan), s_(plan.shape) {
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
  void Transform(const T* from, Operand norm, int64_t batch, int64_t row,
                 T* to) const;
  absl::Status TransformQueries();
  // Puts together the rows that attention reads: those in the past, then the
  // new ones; and makes the present.
  absl::StatusOr<HeadRows<const T>> UpdateCache(Operand past, Result present);
  void StageRows(const T* past, bool keys, int64_t batch, int64_t head,
                 T* to) const;
  absl::StatusOr<HeadRows<const T>> UpdateWindow(Operand past, Result present);
  KeyVisibility Visibility() const;
  absl::Status AddBias(AttentionCall<T>& call) const;
  void AddSinks(AttentionCall<T>& call) const;
  // Calls f(batch, head, [batch, head] in heads of that many rows).
  template <typename F>
  void ForHeads(int64_t heads, int64_t rows, F&& f) const;

  OpContext& op_;
  const Plan& plan_;
  const AttentionShape& s_;
  HeadRows<const T> query_, key_, value_;
  Tensor queries_, staged_[2];
};

template <typename T>
template <typename F>
void Step<T>::ForHeads(int64_t heads, int64_t rows, F&& f) const {
  if (s_.head_size == 0) return;
  op_.threads().ParallelFor(s_.batch * heads,
                            1 + 32768 / (1 + rows * s_.head_size),
                            [&](int64_t begin, int64_t end) {
                              for (int64_t i = begin; i < end; ++i)
                                f(i / heads, i % heads);
                            });
}

template <typename T>
void Step<T>::Transform(const T* from, Operand norm, int64_t batch, int64_t row,
                        T* to) const {
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
  const int64_t angles = Position(plan_, batch, row) * half;
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
  const Entry& entry = plan_.entries[batch];
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
absl::StatusOr<HeadRows<const T>> Step<T>::UpdateCache(Operand past,
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
absl::StatusOr<HeadRows<const T>> Step<T>::UpdateWindow(Operand past,
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
             const Entry& entry = plan_.entries[batch];
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
  for (const Entry& entry : plan_.entries) {
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
  ASSIGN_OR_RETURN(const Plan plan, MakePlan(op));
  if (op.has_input(kSinks) &&
      op.input(kSinks).dims() != Dims{plan.shape.q_heads}) {
    return OpContext::Invalid("head_sink is {}, expected [{}]",
                              Describe(op.input(kSinks)), plan.shape.q_heads);
  }
  return op.ForType<float, Half, BFloat16>(
      op.input(kQuery), [&]<typename T>() { return Step<T>(op, plan).Run(); });
}

}  // namespace addnorm::runtime
