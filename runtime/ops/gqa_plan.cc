// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/gqa_plan.h"

#include <algorithm>
#include <string>

#include "passes/ir/status_macros.h"
#include "runtime/ops/attention_core.h"

namespace addnorm::runtime {
namespace {

absl::Status RejectUnsupported(const OpContext& op) {
  const Attributes& attributes = op.attributes();
  if (attributes.Int("qk_output", 0) != 0)
    return OpContext::Unsupported("qk_output is not supported");
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    const std::string type = attributes.String(name, "NONE");
    if (type != "NONE")
      return OpContext::Unsupported("{} '{}' is not supported", name, type);
  }
  for (const GqaOperand i : {kKeyScale, kValueScale}) {
    if (op.has_input(i))
      return OpContext::Unsupported(
          "operand {} (a scale of the cache) is not "
          "supported",
          static_cast<size_t>(i));
  }
  const ir::DataType type = op.input(kQuery).type();
  for (const GqaOperand i : {kKey, kValue, kPastKey, kPastValue, kCos, kSin,
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
absl::Status ReadShape(const OpContext& op, GqaPlan& plan) {
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
  for (const GqaOperand i : {kKey, kValue}) {
    const Dims expected = {s.batch, s.q_rows, Stride(s.kv_heads, s.head_size)};
    if (!plan.packed && op.input(i).dims() != expected)
      return OpContext::Invalid(
          "{} is given for the keys or values, expected "
          "{}",
          Describe(op.input(i)), ToString(expected));
  }
  return absl::OkStatus();
}

absl::Status ReadPast(const OpContext& op, GqaPlan& plan) {
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
  for (const GqaOperand i : {kPastKey, kPastValue}) {
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
int64_t ResidentTokens(const GqaPlan& plan, int64_t total) {
  const int64_t capacity = plan.past_capacity;
  if (!plan.windowed || total <= capacity) return total;
  const int64_t step = capacity - plan.window + 1;
  return total - step * ((total - capacity + step - 1) / step);
}

// The op's lengths, by batch entry.
struct Lengths {
  std::vector<int64_t> last;   // position of the last token
  std::vector<int64_t> added;  // rows of the query that are tokens; or empty
};

absl::StatusOr<Lengths> ReadLengths(const OpContext& op, GqaPlan& plan) {
  Lengths lengths;
  ASSIGN_OR_RETURN(lengths.last, op.Ints(kLengths));
  ASSIGN_OR_RETURN(const std::vector<int64_t> total, op.Ints(kTotalLength));
  const auto batch = static_cast<size_t>(plan.shape.batch);
  if (lengths.last.size() != batch || total.size() != 1 || total[0] < 0) {
    return OpContext::Invalid(
        "seqlens_k is {} and total_sequence_length {}, expected [{}] and one "
        "length",
        Describe(op.input(kLengths)), Describe(op.input(kTotalLength)), batch);
  }
  plan.total_length = total[0];
  if (!op.has_input(kQueryLengths)) return lengths;
  ASSIGN_OR_RETURN(lengths.added, op.Ints(kQueryLengths));
  if (lengths.added.size() != batch) {
    return OpContext::Invalid("query_seqlens is {}, expected [{}]",
                              Describe(op.input(kQueryLengths)), batch);
  }
  return lengths;
}

absl::Status SetCapacity(GqaPlan& plan) {
  plan.capacity = plan.past_capacity;
  if (plan.windowed) return absl::OkStatus();
  // Room for tokens that come later is the caller's to make, in the past.
  if (plan.total_length - plan.shape.q_rows > plan.past_capacity) {
    return OpContext::Invalid(
        "total_sequence_length {} with {} new tokens and a cache of {} rows",
        plan.total_length, plan.shape.q_rows, plan.past_capacity);
  }
  plan.capacity = std::max(plan.past_capacity, plan.total_length);
  return absl::OkStatus();
}

absl::StatusOr<GqaEntry> MakeEntry(const GqaPlan& plan, const Lengths& lengths,
                                   size_t b) {
  const int64_t last = lengths.last[b], rows = plan.shape.q_rows;
  if (last < -1 || last >= plan.total_length) {
    return OpContext::Invalid("seqlens_k has {} with total_sequence_length {}",
                              last, plan.total_length);
  }
  GqaEntry entry{.total = last + 1};
  const int64_t most = std::min(rows, entry.total);
  entry.added = lengths.added.empty() ? most : lengths.added[b];
  if (entry.added < 0 || entry.added > most) {
    return OpContext::Invalid("query_seqlens has {}, expected at most {}",
                              entry.added, most);
  }
  entry.resident = ResidentTokens(plan, entry.old_tokens());
  entry.kept = ResidentTokens(plan, entry.total);
  if (entry.resident > plan.past_capacity) {
    return OpContext::Invalid("{} earlier tokens in a cache of {} rows",
                              entry.resident, plan.past_capacity);
  }
  return entry;
}

absl::Status ReadEntries(const OpContext& op, GqaPlan& plan) {
  ASSIGN_OR_RETURN(const Lengths lengths, ReadLengths(op, plan));
  RETURN_IF_ERROR(SetCapacity(plan));
  AttentionShape& s = plan.shape;
  for (size_t b = 0; b < lengths.last.size(); ++b) {
    ASSIGN_OR_RETURN(const GqaEntry entry, MakeEntry(plan, lengths, b));
    s.kv_rows = std::max(s.kv_rows, entry.rows());
    plan.entries.push_back(entry);
  }
  // Without a window all rows are in the present, which is read.
  if (!plan.windowed) s.kv_rows = plan.capacity;
  return absl::OkStatus();
}

absl::Status ReadRotation(const OpContext& op, GqaPlan& plan) {
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
      const int64_t position = plan.Position(b, row);
      if (position < 0 || position >= cos.dims()[0])
        return OpContext::Invalid("position {} is not in the cache {}",
                                  position, Describe(cos));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckWeights(const OpContext& op, const AttentionShape& shape) {
  for (const GqaOperand i : {kQueryNorm, kKeyNorm}) {
    if (op.has_input(kQueryNorm) != op.has_input(kKeyNorm) ||
        (op.has_input(i) && op.input(i).dims() != Dims{shape.head_size}))
      return OpContext::Invalid(
          "the norms' weights are {} and {}, expected "
          "[{}]",
          Describe(op.input(kQueryNorm)), Describe(op.input(kKeyNorm)),
          shape.head_size);
  }
  if (op.has_input(kSinks) && op.input(kSinks).dims() != Dims{shape.q_heads}) {
    return OpContext::Invalid("head_sink is {}, expected [{}]",
                              Describe(op.input(kSinks)), shape.q_heads);
  }
  return absl::OkStatus();
}

}  // namespace

int64_t GqaPlan::Position(int64_t batch, int64_t row) const {
  const auto b = static_cast<size_t>(batch);
  return positions.empty() ? entries[b].old_tokens() + row
                           : positions[b * shape.q_rows + row];
}

absl::StatusOr<GqaPlan> MakeGqaPlan(const OpContext& op) {
  if (!op.has_input(kQuery) || !op.has_input(kLengths) ||
      !op.has_input(kTotalLength))
    return OpContext::Invalid(
        "query, seqlens_k or total_sequence_length is missing");
  RETURN_IF_ERROR(RejectUnsupported(op));
  GqaPlan plan;
  RETURN_IF_ERROR(ReadShape(op, plan));
  RETURN_IF_ERROR(ReadPast(op, plan));
  RETURN_IF_ERROR(ReadEntries(op, plan));
  RETURN_IF_ERROR(ReadRotation(op, plan));
  RETURN_IF_ERROR(CheckWeights(op, plan.shape));
  return plan;
}

}  // namespace addnorm::runtime
