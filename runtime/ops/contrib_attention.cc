// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft Attention: a projection to queries, keys and values side by
// side, then attention. Roundings: the projection with its bias once to the
// tensors' type; the rest is in attention_core.h.
#include <cmath>

#include "passes/ir/status_macros.h"
#include "runtime/gemm.h"
#include "runtime/ops/attention_core.h"
#include "runtime/ops/attention_ops.h"
#include "runtime/ops/kv_cache.h"
#include "runtime/ops/padding_bias.h"
#include "runtime/ops/widened.h"

namespace addnorm::runtime {
namespace {

enum Operand : size_t {
  kInput,
  kWeights,
  kBias,
  kMask,
  kPast,
  kScoreBias,
  kPastLength
};

struct Projection {
  int64_t rows = 0, depth = 0, width = 0;
  AttentionShape shape;
  int64_t past_rows = 0;
  int64_t q_width() const { return shape.q_heads * shape.head_size; }
  int64_t v_width() const { return shape.q_heads * shape.v_head_size; }
};

absl::Status RejectUnsupported(const OpContext& op) {
  for (const char* name : {"do_rotary", "past_present_share_buffer"}) {
    if (op.attributes().Int(name, 0) != 0)
      return OpContext::Unsupported("{} is not supported", name);
  }
  if (op.has_input(kPastLength))
    return OpContext::Unsupported("past_sequence_length is not supported");
  for (const Operand i : {kWeights, kBias, kPast}) {
    if (op.has_input(i) && op.input(i).type() != op.input(kInput).type())
      return OpContext::Unsupported(
          "operand {} is {}, and the input {}", static_cast<size_t>(i),
          Describe(op.input(i)), Describe(op.input(kInput)));
  }
  return absl::OkStatus();
}

// Sets the sizes of the heads from the projection's width.
absl::Status ReadHeads(const OpContext& op, Projection& p) {
  const int64_t heads = op.attributes().Int("num_heads", 0);
  RETURN_IF_ERROR(CheckHeads(heads, heads));
  const std::vector<int64_t> sizes =
      op.attributes()
          .Ints("qkv_hidden_sizes")
          .value_or(std::vector<int64_t>(3, p.width / 3));
  if (sizes.size() != 3 || sizes[0] < 0 || sizes[2] < 0 ||
      sizes[0] > p.width / 2 || sizes[2] > p.width || sizes[0] != sizes[1] ||
      sizes[2] != p.width - 2 * sizes[0] || sizes[0] % heads != 0 ||
      sizes[2] % heads != 0) {
    return OpContext::Invalid(
        "{} columns of weights cannot be cut into queries, keys and values of "
        "{} heads with qkv_hidden_sizes {}",
        p.width, heads, ToString(sizes));
  }
  p.shape.q_heads = p.shape.kv_heads = heads;
  p.shape.head_size = sizes[0] / heads;
  p.shape.v_head_size = sizes[2] / heads;
  return absl::OkStatus();
}

absl::Status ReadPast(const OpContext& op, Projection& p) {
  AttentionShape& s = p.shape;
  s.kv_rows = s.q_rows;
  if (!op.has_input(kPast) && !op.wants_output(1)) return absl::OkStatus();
  if (s.head_size != s.v_head_size)
    return OpContext::Invalid("a past with heads of {} and {}", s.head_size,
                              s.v_head_size);
  if (!op.has_input(kPast)) return absl::OkStatus();
  const Tensor& past = op.input(kPast);
  if (past.rank() == 5) p.past_rows = past.dims()[3];
  const Dims expected = {2, s.batch, s.q_heads, p.past_rows, s.head_size};
  if (past.dims() != expected)
    return OpContext::Invalid("the past is {}, expected {}", Describe(past),
                              ToString(expected));
  if (__builtin_add_overflow(s.q_rows, p.past_rows, &s.kv_rows))
    return OpContext::Invalid("there are too many keys");
  return absl::OkStatus();
}

absl::StatusOr<Projection> ReadProjection(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  RETURN_IF_ERROR(RejectUnsupported(op));
  const Tensor& input = op.input(kInput);
  const Tensor& weights = op.input(kWeights);
  if (input.rank() != 3 || weights.rank() != 2 ||
      input.dims()[2] != weights.dims()[0]) {
    return OpContext::Invalid("input {} and weights {} do not match",
                              Describe(input), Describe(weights));
  }
  Projection p;
  p.depth = weights.dims()[0];
  p.width = weights.dims()[1];
  p.shape.batch = input.dims()[0];
  p.shape.q_rows = input.dims()[1];
  if (__builtin_mul_overflow(p.shape.batch, p.shape.q_rows, &p.rows))
    return OpContext::Invalid("the input {} is too large", Describe(input));
  if (op.has_input(kBias) && op.input(kBias).dims() != Dims{p.width}) {
    return OpContext::Invalid("the bias is {}, expected [{}]",
                              Describe(op.input(kBias)), p.width);
  }
  RETURN_IF_ERROR(ReadHeads(op, p));
  RETURN_IF_ERROR(ReadPast(op, p));
  return p;
}

// [batch, rows, width]: input · weights + bias.
template <typename T>
absl::StatusOr<Tensor> Project(OpContext& op, const Projection& p) {
  const Dims dims = {p.shape.batch, p.shape.q_rows, p.width};
  ASSIGN_OR_RETURN(const Tensor input, Widened<T>(op, op.input(kInput)));
  ASSIGN_OR_RETURN(const Tensor weights, Widened<T>(op, op.input(kWeights)));
  ASSIGN_OR_RETURN(Tensor wide, op.Scratch(ir::DataType::kFloat, dims));
  if (wide.count() > 0) {
    RETURN_IF_ERROR(Gemm({.m = p.rows, .n = p.width, .k = p.depth},
                         input.data<float>(), weights.data<float>(),
                         wide.mutable_data<float>(), op.threads()));
  }
  ASSIGN_OR_RETURN(Tensor result, op.Scratch(kTypeOf<T>, dims));
  const T* bias = op.has_input(kBias) ? op.input(kBias).data<T>() : nullptr;
  for (int64_t i = 0; i < wide.count(); ++i) {
    const float sum = wide.data<float>()[i] +
                      (bias == nullptr ? 0 : Widen(bias[i % p.width]));
    result.mutable_data<T>()[i] = Rounded<T>(sum);
  }
  return result;
}

// Keys and values with their past are the two halves of output 1.
template <typename T>
absl::Status JoinPast(OpContext& op, const Projection& p,
                      AttentionCall<T>& call) {
  if (p.past_rows == 0 && !op.wants_output(1)) return absl::OkStatus();
  const AttentionShape& s = p.shape;
  const Dims all = {s.batch, s.q_heads, s.kv_rows, s.head_size};
  ASSIGN_OR_RETURN(
      Tensor * present,
      op.Output(1, kTypeOf<T>, {2, all[0], all[1], all[2], all[3]}));
  T* to = present->mutable_data<T>();
  const T* past = op.has_input(kPast) ? op.input(kPast).data<T>() : nullptr;
  for (HeadRows<const T>* rows : {&call.k, &call.v}) {
    AppendRows(op, past, p.past_rows, *rows, s.q_rows, all, to);
    *rows = HeadMajor(static_cast<const T*>(to), all[1], all[2], all[3]);
    to += present->count() / 2;
    if (past != nullptr) past += op.input(kPast).count() / 2;
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status RunTyped(OpContext& op, const Projection& p) {
  const AttentionShape& s = p.shape;
  ASSIGN_OR_RETURN(const Tensor projected, Project<T>(op, p));
  const T* data = projected.data<T>();
  AttentionCall<T> call{.shape = s};
  call.q = RowMajor(data, s.q_rows, s.head_size, p.width);
  call.k = RowMajor(data + p.q_width(), s.q_rows, s.head_size, p.width);
  call.v = RowMajor(data + 2 * p.q_width(), s.q_rows, s.v_head_size, p.width);
  RETURN_IF_ERROR(JoinPast(op, p, call));
  call.scale = op.attributes().Float("scale", 0);
  if (call.scale == 0)
    call.scale = 1 / std::sqrt(static_cast<double>(s.head_size));
  call.visible.causal = op.attributes().Int("unidirectional", 0) != 0;
  call.visible.past_rows = p.past_rows;
  Tensor padding;
  if (op.has_input(kMask)) {
    ASSIGN_OR_RETURN(padding, PaddingBias(op, op.input(kMask), s));
    ASSIGN_OR_RETURN(call.biases.emplace_back(),
                     MakeScoreBias(padding, s, s.kv_rows, false));
  }
  if (op.has_input(kScoreBias)) {
    ASSIGN_OR_RETURN(call.biases.emplace_back(),
                     MakeScoreBias(op.input(kScoreBias), s, s.kv_rows, false));
  }
  ASSIGN_OR_RETURN(Tensor * y,
                   op.Output(0, kTypeOf<T>, {s.batch, s.q_rows, p.v_width()}));
  call.y = RowMajor(y->mutable_data<T>(), s.q_rows, s.v_head_size, p.v_width());
  return RunAttention(op, call);
}

}  // namespace

absl::Status ContribAttention(OpContext& op) {
  ASSIGN_OR_RETURN(const Projection projection, ReadProjection(op));
  return op.ForType<float, Half, BFloat16>(op.input(kInput), [&]<typename T>() {
    return RunTyped<T>(op, projection);
  });
}

}  // namespace addnorm::runtime
