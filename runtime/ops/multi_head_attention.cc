// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft MultiHeadAttention. Layouts of its operands: query, key and
// value [batch, rows, heads * size]; key and value [batch, heads, rows, size];
// one operand with all three or with key and value,
// [batch, rows, heads, 2 or 3, size].
//
// Roundings: the sum with the projection's bias once to the tensors' type; the
// rest is in attention_core.h.
#include <cmath>

#include "passes/ir/status_macros.h"
#include "runtime/grain.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/ops/attention_core.h"
#include "runtime/ops/attention_ops.h"
#include "runtime/ops/kv_cache.h"
#include "runtime/ops/padding_bias.h"

namespace addnorm::runtime {
namespace {

enum Operand : size_t {
  kQuery,
  kKey,
  kValue,
  kProjectionBias,
  kPadding,
  kScoreBias,
  kPastKey,
  kPastValue,
  kPastLength,
  kBeams
};
enum Result : size_t { kY, kPresentKey, kPresentValue };

// Where one of query, key, value is, found in whatever layout it has.
struct Source {
  size_t operand = 0;
  int64_t batch = 0, heads = 0, rows = 0, size = 0;
  int64_t part = 0, parts = 1;  // of an operand that holds several
};

absl::StatusOr<Source> FindSource(const OpContext& op, size_t operand,
                                  int64_t part, int64_t heads) {
  const Tensor& tensor = op.input(operand);
  const Dims& dims = tensor.dims();
  Source source{.operand = operand, .heads = heads};
  if (dims.size() == 3 && dims[2] % heads == 0) {
    source.batch = dims[0];
    source.rows = dims[1];
    source.size = dims[2] / heads;
  } else if (dims.size() == 4 && dims[1] == heads) {
    source.batch = dims[0];
    source.rows = dims[2];
    source.size = dims[3];
  } else if (dims.size() == 5 && dims[2] == heads && part < dims[3]) {
    source = {operand, dims[0], heads, dims[1], dims[4], part, dims[3]};
  } else {
    return OpContext::Invalid("{} cannot be cut into {} heads",
                              Describe(tensor), heads);
  }
  return source;
}

template <typename T>
HeadRows<const T> RowsOf(const OpContext& op, const Source& source) {
  const Tensor& tensor = op.input(source.operand);
  const T* data = tensor.data<T>();
  if (tensor.rank() == 4)
    return HeadMajor(data, source.heads, source.rows, source.size);
  HeadRows<const T> rows =
      RowMajor(data + Stride(source.part, source.size), source.rows,
               source.size, Stride(source.heads, source.parts, source.size));
  rows.head_stride = Stride(source.parts, source.size);
  return rows;
}

struct Sources {
  Source q, k, v;
  AttentionShape shape;
  int64_t past_rows = 0;
};

absl::Status RejectUnsupported(const OpContext& op) {
  for (const Operand i : {kPastLength, kBeams}) {
    if (op.has_input(i))
      return OpContext::Unsupported(
          "operand {} (a shared cache) is not "
          "supported",
          static_cast<size_t>(i));
  }
  for (const Operand i :
       {kKey, kValue, kProjectionBias, kPastKey, kPastValue}) {
    if (op.has_input(i) && op.input(i).type() != op.input(kQuery).type())
      return OpContext::Unsupported(
          "operand {} is {}, and the query {}", static_cast<size_t>(i),
          Describe(op.input(i)), Describe(op.input(kQuery)));
  }
  return absl::OkStatus();
}

absl::Status FindSources(const OpContext& op, int64_t heads, Sources& found) {
  const bool all_in_query = !op.has_input(kKey);
  const size_t key = all_in_query ? kQuery : kKey;
  const bool packed = op.input(key).rank() == 5;
  if (op.has_input(kValue) == packed)
    return OpContext::Invalid("value is {}, and the key {}",
                              Describe(op.input(kValue)),
                              Describe(op.input(key)));
  const int64_t first = all_in_query ? 1 : 0;
  const int64_t parts = first + 2;
  if (packed && op.input(key).dims()[3] != parts)
    return OpContext::Invalid("{} does not hold {} parts",
                              Describe(op.input(key)), parts);
  ASSIGN_OR_RETURN(found.q, FindSource(op, kQuery, 0, heads));
  ASSIGN_OR_RETURN(found.k, FindSource(op, key, packed ? first : 0, heads));
  ASSIGN_OR_RETURN(found.v, FindSource(op, packed ? key : size_t{kValue},
                                       packed ? first + 1 : 0, heads));
  return absl::OkStatus();
}

absl::Status CheckPast(const OpContext& op, Operand i, const Source& added,
                       int64_t rows) {
  const Dims expected = {added.batch, added.heads, rows, added.size};
  if (op.has_input(i) && op.input(i).dims() == expected)
    return absl::OkStatus();
  return OpContext::Invalid("the past is {}, expected {}",
                            Describe(op.input(i)), ToString(expected));
}

absl::StatusOr<Sources> ReadOperands(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  RETURN_IF_ERROR(RejectUnsupported(op));
  const int64_t heads = op.attributes().Int("num_heads", 0);
  RETURN_IF_ERROR(CheckHeads(heads, heads));
  Sources s;
  RETURN_IF_ERROR(FindSources(op, heads, s));
  if (s.q.batch != s.k.batch || s.q.batch != s.v.batch ||
      s.k.rows != s.v.rows || s.q.size != s.k.size) {
    return OpContext::Invalid("query {}, key {} and value {} do not match",
                              Describe(op.input(s.q.operand)),
                              Describe(op.input(s.k.operand)),
                              Describe(op.input(s.v.operand)));
  }
  if (op.has_input(kPastKey) || op.has_input(kPastValue)) {
    const Tensor& past = op.input(kPastKey);
    if (past.rank() == 4) s.past_rows = past.dims()[2];
    RETURN_IF_ERROR(CheckPast(op, kPastKey, s.k, s.past_rows));
    RETURN_IF_ERROR(CheckPast(op, kPastValue, s.v, s.past_rows));
  }
  int64_t rows = 0;
  if (__builtin_add_overflow(s.past_rows, s.k.rows, &rows))
    return OpContext::Invalid("there are too many keys");
  s.shape = {s.q.batch, heads, heads, s.q.rows, rows, s.q.size, s.v.size};
  const int64_t q_width = Stride(heads, s.q.size);
  const int64_t v_width = Stride(heads, s.v.size);
  int64_t width = 0;
  if (__builtin_add_overflow(q_width, q_width, &width) ||
      __builtin_add_overflow(width, v_width, &width))
    return OpContext::Invalid("the heads are too large");
  const Dims bias = {width};
  if (op.has_input(kProjectionBias) && op.input(kProjectionBias).dims() != bias)
    return OpContext::Invalid("the bias is {}, expected {}",
                              Describe(op.input(kProjectionBias)),
                              ToString(bias));
  return s;
}

// rows + the part of the projection's bias that begins at `from`.
template <typename T>
absl::StatusOr<Tensor> WithBias(OpContext& op, const Source& source,
                                const HeadRows<const T>& rows, const T* from) {
  ASSIGN_OR_RETURN(Tensor sums,
                   op.Scratch(kTypeOf<T>, {source.batch, source.heads,
                                           source.rows, source.size}));
  if (sums.count() == 0) return sums;
  T* const data = sums.mutable_data<T>();
  op.threads().ParallelFor(
      source.batch * source.heads * source.rows, LineGrain(source.size),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t head = i / source.rows;
          const T* row = rows.At(head / source.heads, head % source.heads,
                                 i % source.rows);
          const T* bias = from + head % source.heads * source.size;
          BinaryRows(BinaryOp::kAdd, row, bias, data + i * source.size,
                     static_cast<size_t>(source.size));
        }
      });
  return sums;
}

template <typename T>
class MultiHead {
 public:
  MultiHead(OpContext& op, const Sources& sources)
      : op_(op), sources_(sources) {}

  absl::Status Run();

 private:
  // The rows of a source, with its part of the projection's bias added.
  absl::StatusOr<HeadRows<const T>> Projected(const Source& source,
                                              int64_t bias_at);
  // Keys or values with their past, which are also the present.
  absl::StatusOr<HeadRows<const T>> Joined(const Source& source,
                                           const HeadRows<const T>& rows,
                                           Operand past, Result present);
  absl::Status AddBiases(AttentionCall<T>& call);

  OpContext& op_;
  const Sources& sources_;
  std::vector<Tensor> kept_;  // what views point into
};

template <typename T>
absl::StatusOr<HeadRows<const T>> MultiHead<T>::Projected(const Source& source,
                                                          int64_t bias_at) {
  const HeadRows<const T> rows = RowsOf<T>(op_, source);
  if (!op_.has_input(kProjectionBias)) return rows;
  ASSIGN_OR_RETURN(Tensor sums,
                   WithBias(op_, source, rows,
                            op_.input(kProjectionBias).data<T>() + bias_at));
  kept_.push_back(sums);
  return HeadMajor(static_cast<const T*>(sums.data<T>()), source.heads,
                   source.rows, source.size);
}

template <typename T>
absl::StatusOr<HeadRows<const T>> MultiHead<T>::Joined(
    const Source& source, const HeadRows<const T>& rows, Operand past,
    Result present) {
  if (sources_.past_rows == 0 && !op_.wants_output(present)) return rows;
  const Dims all = {source.batch, source.heads, sources_.shape.kv_rows,
                    source.size};
  ASSIGN_OR_RETURN(Tensor * joined, op_.Output(present, kTypeOf<T>, all));
  T* const data = joined->mutable_data<T>();
  AppendRows(op_, op_.has_input(past) ? op_.input(past).data<T>() : nullptr,
             sources_.past_rows, rows, source.rows, all, data);
  return HeadMajor(static_cast<const T*>(data), all[1], all[2], all[3]);
}

template <typename T>
absl::Status MultiHead<T>::AddBiases(AttentionCall<T>& call) {
  kept_.reserve(8);  // biases point to its elements
  if (op_.has_input(kPadding)) {
    ASSIGN_OR_RETURN(kept_.emplace_back(),
                     PaddingBias(op_, op_.input(kPadding), call.shape));
    ASSIGN_OR_RETURN(
        call.biases.emplace_back(),
        MakeScoreBias(kept_.back(), call.shape, call.shape.kv_rows, false));
  }
  if (op_.has_input(kScoreBias)) {
    ASSIGN_OR_RETURN(call.biases.emplace_back(),
                     MakeScoreBias(op_.input(kScoreBias), call.shape,
                                   call.shape.kv_rows, false));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status MultiHead<T>::Run() {
  const AttentionShape& shape = sources_.shape;
  AttentionCall<T> call{.shape = shape};
  const int64_t width = Stride(shape.q_heads, shape.v_head_size);
  const int64_t q_width = Stride(shape.q_heads, shape.head_size);
  ASSIGN_OR_RETURN(Tensor * y, op_.Output(kY, kTypeOf<T>,
                                          {shape.batch, shape.q_rows, width}));
  call.y =
      RowMajor(y->mutable_data<T>(), shape.q_rows, shape.v_head_size, width);
  ASSIGN_OR_RETURN(call.q, Projected(sources_.q, 0));
  ASSIGN_OR_RETURN(const HeadRows<const T> k, Projected(sources_.k, q_width));
  ASSIGN_OR_RETURN(const HeadRows<const T> v,
                   Projected(sources_.v, Stride(2, q_width)));
  ASSIGN_OR_RETURN(call.k, Joined(sources_.k, k, kPastKey, kPresentKey));
  ASSIGN_OR_RETURN(call.v, Joined(sources_.v, v, kPastValue, kPresentValue));
  call.scale = op_.attributes().Float("scale", 0);
  if (call.scale == 0)
    call.scale = 1 / std::sqrt(static_cast<double>(shape.head_size));
  call.visible.causal = op_.attributes().Int("unidirectional", 0) != 0;
  call.visible.past_rows = sources_.past_rows;
  RETURN_IF_ERROR(AddBiases(call));
  return RunAttention(op_, call);
}

}  // namespace

absl::Status MultiHeadAttention(OpContext& op) {
  ASSIGN_OR_RETURN(const Sources sources, ReadOperands(op));
  return op.ForType<float, Half, BFloat16>(op.input(kQuery), [&]<typename T>() {
    return MultiHead<T>(op, sources).Run();
  });
}

}  // namespace addnorm::runtime
