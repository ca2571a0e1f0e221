// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// LinearAttention (opset 27), token after token as its definition has it.
// Roundings: state and results are float, each rounded once where it is
// written. Sums over the elements of a key run in their order.
//
//   S = exp(decay) * S;  u = v or beta * (v - Sᵀk);  S = S + k uᵀ;
//   y = scale * Sᵀq
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/ops/attention_core.h"
#include "runtime/ops/attention_ops.h"

namespace addnorm::runtime {
namespace {

enum Operand : size_t { kQuery, kKey, kValue, kPastState, kDecay, kBeta };

struct LinearCall {
  int64_t batch = 0, tokens = 0, q_heads = 0, kv_heads = 0;
  int64_t key_size = 0, value_size = 0;
  bool decays = false, corrects = false;
  // Values of decay and beta a token; of decay one a head or one an element.
  int64_t decay_width = 0, beta_width = 0;
  float scale = 1;
};

absl::Status ReadRule(const OpContext& op, LinearCall& call) {
  const std::string rule = op.attributes().String("update_rule", "gated_delta");
  call.decays = rule == "gated" || rule == "gated_delta";
  call.corrects = rule == "delta" || rule == "gated_delta";
  if (!call.decays && !call.corrects && rule != "linear")
    return OpContext::Invalid("update_rule '{}' is not known", rule);
  if (call.decays != op.has_input(kDecay))
    return OpContext::Invalid("update_rule '{}' {} decay", rule,
                              call.decays ? "needs" : "forbids");
  if (call.corrects != op.has_input(kBeta))
    return OpContext::Invalid("update_rule '{}' {} beta", rule,
                              call.corrects ? "needs" : "forbids");
  return absl::OkStatus();
}

// The last dim of an operand [batch, tokens, …] of the query's type.
absl::StatusOr<int64_t> Width(const OpContext& op, size_t i) {
  const Tensor& query = op.input(kQuery);
  const Tensor& tensor = op.input(i);
  if (tensor.type() == query.type() && query.rank() == 3 &&
      tensor.rank() == 3 && tensor.dims()[0] == query.dims()[0] &&
      tensor.dims()[1] == query.dims()[1])
    return tensor.dims()[2];
  return OpContext::Invalid("operand {} is {}, which does not fit the query {}",
                            i, Describe(tensor), Describe(query));
}

absl::Status ReadGates(const OpContext& op, LinearCall& call) {
  if (call.decays) {
    ASSIGN_OR_RETURN(call.decay_width, Width(op, kDecay));
    if (call.decay_width != call.kv_heads &&
        call.decay_width != call.kv_heads * call.key_size)
      return OpContext::Invalid("decay {} does not fit {} heads of {}",
                                Describe(op.input(kDecay)), call.kv_heads,
                                call.key_size);
  }
  if (call.corrects) {
    ASSIGN_OR_RETURN(call.beta_width, Width(op, kBeta));
    if (call.beta_width != call.kv_heads && call.beta_width != 1)
      return OpContext::Invalid("beta {} does not fit {} heads",
                                Describe(op.input(kBeta)), call.kv_heads);
  }
  return absl::OkStatus();
}

absl::StatusOr<LinearCall> ReadCall(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(3));
  LinearCall call;
  RETURN_IF_ERROR(ReadRule(op, call));
  call.q_heads = op.attributes().Int("q_num_heads", 0);
  call.kv_heads = op.attributes().Int("kv_num_heads", 0);
  RETURN_IF_ERROR(CheckHeads(call.q_heads, call.kv_heads));
  ASSIGN_OR_RETURN(const int64_t q_width, Width(op, kQuery));
  ASSIGN_OR_RETURN(const int64_t k_width, Width(op, kKey));
  ASSIGN_OR_RETURN(const int64_t v_width, Width(op, kValue));
  call.batch = op.input(kQuery).dims()[0];
  call.tokens = op.input(kQuery).dims()[1];
  call.key_size = q_width / call.q_heads;
  call.value_size = v_width / call.kv_heads;
  if (q_width % call.q_heads != 0 || v_width % call.kv_heads != 0 ||
      k_width % call.kv_heads != 0 ||
      k_width / call.kv_heads != call.key_size) {
    return OpContext::Invalid(
        "query {}, key {} and value {} do not fit {} and {} heads",
        Describe(op.input(kQuery)), Describe(op.input(kKey)),
        Describe(op.input(kValue)), call.q_heads, call.kv_heads);
  }
  RETURN_IF_ERROR(ReadGates(op, call));
  call.scale = op.attributes().Float("scale", 0);
  if (call.scale == 0)
    call.scale = 1 / std::sqrt(static_cast<float>(call.key_size));
  return call;
}

// One head of keys and values and its state; rows of the other operands are
// found by the token's number.
template <typename T>
class LinearHead {
 public:
  LinearHead(const OpContext& op, const LinearCall& call, int64_t batch,
             int64_t head, float* state, T* y)
      : op_(op), call_(call), batch_(batch), head_(head), state_(state), y_(y) {
    update_.resize(static_cast<size_t>(call.value_size));
  }

  void Step(int64_t token) {
    if (call_.decays) Decay(token);
    const T* value =
        Row(kValue, token, call_.kv_heads * call_.value_size, call_.value_size);
    for (size_t i = 0; i < update_.size(); ++i) update_[i] = Widen(value[i]);
    const T* key =
        Row(kKey, token, call_.kv_heads * call_.key_size, call_.key_size);
    if (call_.corrects) Correct(token, key);
    for (int64_t k = 0; k < call_.key_size; ++k) {
      const float factor = Widen(key[k]);
      for (size_t i = 0; i < update_.size(); ++i)
        StateRow(k)[i] += factor * update_[i];
    }
    const int64_t group = call_.q_heads / call_.kv_heads;
    for (int64_t q = head_ * group; q < (head_ + 1) * group; ++q)
      Read(token, q);
  }

 private:
  float* StateRow(int64_t k) { return state_ + k * call_.value_size; }
  int64_t TokenRow(int64_t token) const {
    return batch_ * call_.tokens + token;
  }
  // This head's part of an operand's row.
  const T* Row(size_t operand, int64_t token, int64_t width, int64_t size) {
    return op_.input(operand).data<T>() + TokenRow(token) * width +
           head_ * size;
  }

  void Decay(int64_t token) {
    const bool by_element = call_.decay_width != call_.kv_heads;
    const T* decay =
        Row(kDecay, token, call_.decay_width, by_element ? call_.key_size : 1);
    for (int64_t k = 0; k < call_.key_size; ++k) {
      const float factor = std::exp(Widen(decay[by_element ? k : 0]));
      for (int64_t i = 0; i < call_.value_size; ++i) StateRow(k)[i] *= factor;
    }
  }

  void Correct(int64_t token, const T* key) {
    std::vector<float> seen(update_.size(), 0);
    for (int64_t k = 0; k < call_.key_size; ++k) {
      const float factor = Widen(key[k]);
      for (size_t i = 0; i < seen.size(); ++i)
        seen[i] += StateRow(k)[i] * factor;
    }
    const float beta =
        Widen(op_.input(kBeta).data<T>()[TokenRow(token) * call_.beta_width +
                                         (call_.beta_width == 1 ? 0 : head_)]);
    for (size_t i = 0; i < seen.size(); ++i)
      update_[i] = beta * (update_[i] - seen[i]);
  }

  void Read(int64_t token, int64_t q_head) {
    const T* query =
        op_.input(kQuery).data<T>() +
        (TokenRow(token) * call_.q_heads + q_head) * call_.key_size;
    std::vector<float> sums(update_.size(), 0);
    for (int64_t k = 0; k < call_.key_size; ++k) {
      const float factor = Widen(query[k]);
      for (size_t i = 0; i < sums.size(); ++i)
        sums[i] += factor * StateRow(k)[i];
    }
    T* y = y_ + (TokenRow(token) * call_.q_heads + q_head) * call_.value_size;
    for (size_t i = 0; i < sums.size(); ++i)
      y[i] = Rounded<T>(call_.scale * sums[i]);
  }

  const OpContext& op_;
  const LinearCall& call_;
  const int64_t batch_, head_;
  float* const state_;
  T* const y_;
  std::vector<float> update_;
};

// The states as floats, from past_state or zero.
absl::StatusOr<Tensor> FirstState(OpContext& op, const Dims& dims) {
  ASSIGN_OR_RETURN(Tensor state, op.Scratch(ir::DataType::kFloat, dims));
  float* to = state.mutable_data<float>();
  std::fill_n(to, state.count(), 0.0F);
  if (!op.has_input(kPastState)) return state;
  const Tensor& past = op.input(kPastState);
  if (past.dims() != dims) {
    return OpContext::Invalid("past_state is {}, expected {}", Describe(past),
                              ToString(dims));
  }
  RETURN_IF_ERROR((op.ForType<float, Half, BFloat16>(past, [&]<typename S>() {
    WidenRow(past.data<S>(), to, static_cast<size_t>(past.count()));
  })));
  return state;
}

template <typename T>
absl::Status RunLinear(OpContext& op, const LinearCall& call, float* states) {
  int64_t width = 0;
  if (__builtin_mul_overflow(call.q_heads, call.value_size, &width))
    return OpContext::Invalid("the result is too large");
  ASSIGN_OR_RETURN(Tensor * y,
                   op.Output(0, kTypeOf<T>, {call.batch, call.tokens, width}));
  if (y->count() == 0) return absl::OkStatus();
  T* data = y->mutable_data<T>();
  op.threads().ParallelFor(
      call.batch * call.kv_heads, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          LinearHead<T> head(op, call, i / call.kv_heads, i % call.kv_heads,
                             states + i * call.key_size * call.value_size,
                             data);
          for (int64_t t = 0; t < call.tokens; ++t) head.Step(t);
        }
      });
  return absl::OkStatus();
}

}  // namespace

absl::Status LinearAttention(OpContext& op) {
  ASSIGN_OR_RETURN(const LinearCall call, ReadCall(op));
  ASSIGN_OR_RETURN(Tensor state,
                   FirstState(op, {call.batch, call.kv_heads, call.key_size,
                                   call.value_size}));
  float* states = state.mutable_data<float>();
  RETURN_IF_ERROR(
      (op.ForType<float, Half, BFloat16>(op.input(kQuery), [&]<typename T>() {
        return RunLinear<T>(op, call, states);
      })));
  const ir::DataType type = op.has_input(kPastState)
                                ? op.input(kPastState).type()
                                : op.input(kQuery).type();
  ASSIGN_OR_RETURN(Tensor * present, op.Output(1, type, state.dims()));
  return op.ForType<float, Half, BFloat16>(type, [&]<typename S>() {
    for (int64_t i = 0; i < state.count(); ++i)
      present->mutable_data<S>()[i] = Rounded<S>(states[i]);
  });
}

}  // namespace addnorm::runtime
