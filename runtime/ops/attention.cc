// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of the default domain (opsets 23 to 25), and the table of attention
// ops. Roundings: attention_core.h; the function body of ONNX rounds half types
// after each of its operators instead, and multiplies q and k by the root of
// the scale, where here q is multiplied by the scale. Keys that a query does
// not see are not read, so a NaN in them does not spread.
#include <cmath>
#include <optional>

#include "passes/ir/status_macros.h"
#include "runtime/ops/attention_core.h"
#include "runtime/ops/attention_ops.h"
#include "runtime/ops/groups.h"
#include "runtime/ops/kv_cache.h"

namespace addnorm::runtime {
namespace {

enum Operand : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kKeyCount };
enum Result : size_t { kY, kPresentKey, kPresentValue, kScores };

// [batch, heads, rows, size] of an operand of rank 4, or of rank 3 cut into
// heads.
absl::StatusOr<Dims> HeadDims(const Tensor& tensor, int64_t heads) {
  const Dims& dims = tensor.dims();
  if (tensor.rank() == 4) return dims;
  if (tensor.rank() != 3) {
    return OpContext::Invalid("{} is neither of rank 3 nor 4",
                              Describe(tensor));
  }
  if (heads < 1 || dims[2] % heads != 0) {
    return OpContext::Invalid("{} cannot be cut into {} heads",
                              Describe(tensor), heads);
  }
  return Dims{dims[0], heads, dims[1], dims[2] / heads};
}

template <typename T>
HeadRows<const T> RowsOf(const Tensor& tensor, const Dims& dims) {
  if (tensor.rank() == 4)
    return HeadMajor(tensor.data<T>(), dims[1], dims[2], dims[3]);
  return RowMajor(tensor.data<T>(), dims[2], dims[3], dims[1] * dims[3]);
}

struct Operands {
  Dims q, k, v;  // as [batch, heads, rows, size]
  int64_t past_rows = 0;
  AttentionShape shape;
};

absl::Status CheckTypes(const OpContext& op) {
  const ir::DataType type = op.input(kQ).type();
  for (const Operand i : {kK, kV, kPastKey, kPastValue}) {
    if (op.has_input(i) && op.input(i).type() != type) {
      return OpContext::Unsupported("operands of different types ({} and {})",
                                    Describe(op.input(kQ)),
                                    Describe(op.input(i)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPast(const OpContext& op, Operand i, const Dims& added,
                       int64_t rows) {
  const Dims expected = {added[0], added[1], rows, added[3]};
  if (op.has_input(i) && op.input(i).dims() == expected)
    return absl::OkStatus();
  return OpContext::Invalid("the past is {}, expected {}",
                            Describe(op.input(i)), ToString(expected));
}

absl::StatusOr<Operands> ReadOperands(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(3));
  RETURN_IF_ERROR(CheckTypes(op));
  const int64_t q_heads = op.attributes().Int("q_num_heads", 0);
  const int64_t kv_heads = op.attributes().Int("kv_num_heads", 0);
  Operands o;
  ASSIGN_OR_RETURN(o.q, HeadDims(op.input(kQ), q_heads));
  ASSIGN_OR_RETURN(o.k, HeadDims(op.input(kK), kv_heads));
  ASSIGN_OR_RETURN(o.v, HeadDims(op.input(kV), kv_heads));
  if (o.q[0] != o.k[0] || o.q[0] != o.v[0] || o.k[1] != o.v[1] ||
      o.k[2] != o.v[2] || o.q[3] != o.k[3]) {
    return OpContext::Invalid("queries {}, keys {} and values {} do not match",
                              ToString(o.q), ToString(o.k), ToString(o.v));
  }
  RETURN_IF_ERROR(CheckHeads(o.q[1], o.k[1]));
  if (op.has_input(kPastKey) || op.has_input(kPastValue)) {
    if (op.has_input(kKeyCount))
      return OpContext::Invalid("nonpad_kv_seqlen is given with a past");
    const Tensor& past = op.input(kPastKey);
    if (past.rank() == 4) o.past_rows = past.dims()[2];
    RETURN_IF_ERROR(CheckPast(op, kPastKey, o.k, o.past_rows));
    RETURN_IF_ERROR(CheckPast(op, kPastValue, o.v, o.past_rows));
  }
  int64_t rows = 0;
  if (__builtin_add_overflow(o.past_rows, o.k[2], &rows))
    return OpContext::Invalid("there are too many keys");
  o.shape = {o.q[0], o.q[1], o.k[1], o.q[2], rows, o.q[3], o.v[3]};
  return o;
}

absl::StatusOr<KeyVisibility> ReadVisibility(const OpContext& op,
                                             const Operands& operands) {
  const AttentionShape& shape = operands.shape;
  KeyVisibility visible;
  visible.causal = op.attributes().Int("is_causal", 0) != 0;
  visible.left = op.attributes().Int("left_window_size", -1);
  visible.right = op.attributes().Int("right_window_size", -1);
  if (visible.left < -1 || visible.right < -1)
    return OpContext::Invalid("a window size is less than -1");
  visible.past_rows = operands.past_rows;
  if (!op.has_input(kKeyCount)) return visible;
  ASSIGN_OR_RETURN(visible.key_count, op.Ints(kKeyCount));
  if (op.input(kKeyCount).dims() != Dims{shape.batch}) {
    return OpContext::Invalid("nonpad_kv_seqlen is {}, expected [{}]",
                              Describe(op.input(kKeyCount)), shape.batch);
  }
  for (const int64_t count : visible.key_count) {
    if (count < 0 || count > shape.kv_rows) {
      return OpContext::Invalid(
          "nonpad_kv_seqlen has {}, and there are {} keys", count,
          shape.kv_rows);
    }
    visible.first_query.push_back(count - shape.q_rows);
  }
  return visible;
}

absl::StatusOr<ir::DataType> SoftmaxType(const OpContext& op) {
  const auto type =
      static_cast<ir::DataType>(op.attributes().Int("softmax_precision", 0));
  for (const ir::DataType known :
       {ir::DataType::kUndefined, ir::DataType::kFloat, ir::DataType::kFloat16,
        ir::DataType::kDouble, ir::DataType::kBFloat16}) {
    if (type == known) return type;
  }
  return OpContext::Invalid("softmax_precision {} is no floating-point type",
                            static_cast<int64_t>(type));
}

// Keys or values with their past, which is also what the op gives as present.
template <typename T>
absl::StatusOr<HeadRows<const T>> WithPast(OpContext& op, Operand added,
                                           Operand past, Result present,
                                           const Dims& dims,
                                           const Operands& operands) {
  const HeadRows<const T> rows = RowsOf<T>(op.input(added), dims);
  if (operands.past_rows == 0 && !op.wants_output(present)) return rows;
  const Dims all = {dims[0], dims[1], operands.shape.kv_rows, dims[3]};
  Tensor joined;
  if (operands.past_rows == 0 && op.input(added).rank() == 4) {
    joined = op.input(added);
  } else {
    ASSIGN_OR_RETURN(joined, op.Scratch(kTypeOf<T>, all));
    AppendRows(op, op.has_input(past) ? op.input(past).data<T>() : nullptr,
               operands.past_rows, rows, dims[2], all,
               joined.mutable_data<T>());
  }
  // Kept as an output even if nobody wants it: attention reads it.
  op.SetOutput(present, joined);
  return HeadMajor(static_cast<const Tensor&>(joined).data<T>(), all[1], all[2],
                   all[3]);
}

template <typename T>
absl::Status MakeOutputs(OpContext& op, const Operands& operands,
                         AttentionCall<T>& call) {
  const AttentionShape& s = operands.shape;
  const bool flat = op.input(kQ).rank() == 3;
  int64_t width = 0;
  if (__builtin_mul_overflow(s.q_heads, s.v_head_size, &width))
    return OpContext::Invalid("the result is too large");
  ASSIGN_OR_RETURN(Tensor * y, op.Output(kY, kTypeOf<T>,
                                         flat ? Dims{s.batch, s.q_rows, width}
                                              : Dims{s.batch, s.q_heads,
                                                     s.q_rows, s.v_head_size}));
  T* data = y->mutable_data<T>();
  call.y = flat ? RowMajor(data, s.q_rows, s.v_head_size, width)
                : HeadMajor(data, s.q_heads, s.q_rows, s.v_head_size);
  if (!op.wants_output(kScores)) return absl::OkStatus();
  const int64_t mode = op.attributes().Int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    return OpContext::Invalid("qk_matmul_output_mode is {}", mode);
  call.stage = static_cast<ScoreStage>(mode);
  ASSIGN_OR_RETURN(Tensor * scores,
                   op.Output(kScores, kTypeOf<T>,
                             {s.batch, s.q_heads, s.q_rows, s.kv_rows}));
  call.scores = scores->mutable_data<T>();
  return absl::OkStatus();
}

template <typename T>
absl::Status RunTyped(OpContext& op, const Operands& operands) {
  const AttentionShape& shape = operands.shape;
  AttentionCall<T> call{.shape = shape};
  call.q = RowsOf<T>(op.input(kQ), operands.q);
  ASSIGN_OR_RETURN(
      call.k, WithPast<T>(op, kK, kPastKey, kPresentKey, operands.k, operands));
  ASSIGN_OR_RETURN(call.v, WithPast<T>(op, kV, kPastValue, kPresentValue,
                                       operands.v, operands));
  call.scale = op.attributes().Float("scale", 0);
  if (!op.attributes().Has("scale"))
    call.scale = 1 / std::sqrt(static_cast<double>(shape.head_size));
  call.softcap = op.attributes().Float("softcap", 0);
  ASSIGN_OR_RETURN(call.visible, ReadVisibility(op, operands));
  ASSIGN_OR_RETURN(call.softmax_type, SoftmaxType(op));
  if (op.has_input(kMask)) {
    // From opset 24 on a mask with fewer columns masks the other keys.
    ASSIGN_OR_RETURN(ScoreBias bias,
                     MakeScoreBias(op.input(kMask), shape, shape.kv_rows,
                                   /*broadcast_columns=*/op.opset() < 24));
    call.biases.push_back(bias);
  }
  RETURN_IF_ERROR(MakeOutputs(op, operands, call));
  return RunAttention(op, call);
}

absl::Status Attention(OpContext& op) {
  ASSIGN_OR_RETURN(const Operands operands, ReadOperands(op));
  return op.ForType<ADDNORM_FLOAT_TYPES>(
      op.input(kQ), [&]<typename T>() { return RunTyped<T>(op, operands); });
}

constexpr OpRow kRows[] = {
    {"", "Attention", Attention},
    {"", "LinearAttention", LinearAttention},
    {"", "RotaryEmbedding", RotaryEmbedding},
    {"com.microsoft", "Attention", ContribAttention},
    {"com.microsoft",
     "GroupQueryAttention",
     GroupQueryAttention,
     {{1, 3}, {2, 4}}},
    {"com.microsoft", "MultiHeadAttention", MultiHeadAttention},
    {"com.microsoft", "RotaryEmbedding", ContribRotaryEmbedding},
};

}  // namespace

OpTable AttentionOps() { return kRows; }

}  // namespace addnorm::runtime
