// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Activation functions, of the default domain and of com.microsoft. Each is one
// op: computed in float (double for double) as written here, operation by
// operation, and rounded once to a half type.
#include <algorithm>
#include <cmath>
#include <string>

#include "passes/ir/printable.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/groups.h"
#include "runtime/wrapping.h"

namespace addnorm::runtime {
namespace {

// ---- functions of x alone

// Never overflows: exp of something negative.
constexpr auto kSigmoid = []<typename T>(T x) -> T {
  if (x >= 0) return T{1} / (T{1} + std::exp(-x));
  const T exponential = std::exp(x);
  return exponential / (T{1} + exponential);
};
// log(exp(x) + 1), without overflow and without cancellation.
constexpr auto kSoftplus = []<typename T>(T x) -> T {
  const T rest = std::log1p(std::exp(-std::abs(x)));
  return x > 0 ? x + rest : rest;
};
constexpr auto kSoftsign = []<typename T>(T x) -> T {
  return x / (T{1} + std::abs(x));
};
constexpr auto kMish = []<typename T>(T x) -> T {
  return x * std::tanh(kSoftplus(x));
};
// A NaN is not less, so it stays.
constexpr auto kRelu = []<typename T>(T x) -> T { return x < 0 ? T{0} : x; };
constexpr auto kHardSwish = []<typename T>(T x) -> T {
  const T gate = x / T{6} + T{0.5};
  return x * (gate < 0 ? T{0} : gate > 1 ? T{1} : gate);
};
// (0.5 * x) * (1 + erf(x * sqrt(1/2)))
constexpr auto kGelu = []<typename T>(T x) -> T {
  constexpr T kSqrtHalf = static_cast<T>(0.70710678118654752440);
  return T{0.5} * x * (T{1} + std::erf(x * kSqrtHalf));
};
// (0.5 * x) * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * ((x * x) * x))))
constexpr auto kTanhGelu = []<typename T>(T x) -> T {
  constexpr T kCubic = static_cast<T>(0.044715);
  constexpr T kScale = static_cast<T>(0.79788456080286535588);
  return T{0.5} * x * (T{1} + std::tanh(kScale * (x + kCubic * (x * x * x))));
};

// ---- functions with parameters

template <typename T>
T TimesSigmoid(T x, float alpha) {
  return x * kSigmoid(static_cast<T>(alpha) * x);
}

class Swish {
 public:
  explicit Swish(const OpContext& op) : Swish(op, 1) {}
  template <typename T>
  T operator()(T x) const {
    return TimesSigmoid(x, alpha_);
  }
  // SwiGLU: the gate, times what it gates.
  template <typename T>
  T operator()(T gate, T value) const {
    return TimesSigmoid(gate, alpha_) * value;
  }

 protected:
  Swish(const OpContext& op, float alpha)
      : alpha_(op.attributes().Float("alpha", alpha)) {}

 private:
  float alpha_;
};

class QuickGelu : public Swish {
 public:
  explicit QuickGelu(const OpContext& op) : Swish(op, 1.702f) {}
};

class LeakyRelu {
 public:
  explicit LeakyRelu(const OpContext& op)
      : alpha_(op.attributes().Float("alpha", 0.01f)) {}
  template <typename T>
  T operator()(T x) const {
    return x < 0 ? static_cast<T>(alpha_) * x : x;
  }

 private:
  float alpha_;
};

class ThresholdedRelu {
 public:
  explicit ThresholdedRelu(const OpContext& op)
      : alpha_(op.attributes().Float("alpha", 1)) {}
  template <typename T>
  T operator()(T x) const {
    return x > static_cast<T>(alpha_) ? x : T{0};
  }

 private:
  float alpha_;
};

class HardSigmoid {
 public:
  explicit HardSigmoid(const OpContext& op)
      : alpha_(op.attributes().Float("alpha", 0.2f)),
        beta_(op.attributes().Float("beta", 0.5f)) {}
  template <typename T>
  T operator()(T x) const {
    const T y = static_cast<T>(alpha_) * x + static_cast<T>(beta_);
    return y < 0 ? T{0} : y > 1 ? T{1} : y;
  }

 private:
  float alpha_, beta_;
};

// exp(x) - 1 is expm1(x) in these, which loses no digits near zero.
class Elu {
 public:
  explicit Elu(const OpContext& op)
      : alpha_(op.attributes().Float("alpha", 1)) {}
  template <typename T>
  T operator()(T x) const {
    return x < 0 ? static_cast<T>(alpha_) * std::expm1(x) : x;
  }

 private:
  float alpha_;
};

class Selu {
 public:
  explicit Selu(const OpContext& op)
      : alpha_(op.attributes().Float("alpha", 1.67326319217681884765625f)),
        gamma_(op.attributes().Float("gamma", 1.05070102214813232421875f)) {}
  template <typename T>
  T operator()(T x) const {
    const T y = x > 0 ? x : static_cast<T>(alpha_) * std::expm1(x);
    return static_cast<T>(gamma_) * y;
  }

 private:
  float alpha_, gamma_;
};

class Celu {
 public:
  explicit Celu(const OpContext& op)
      : alpha_(op.attributes().Float("alpha", 1)) {}
  // max(0, x) + min(0, alpha * expm1(x / alpha)); 0 is the first of equals.
  template <typename T>
  T operator()(T x) const {
    const T alpha = static_cast<T>(alpha_);
    const T below = alpha * std::expm1(x / alpha);
    return (x < 0 ? T{0} : x) + (below > 0 ? T{0} : below);
  }

 private:
  float alpha_;
};

absl::Status Gelu(OpContext& op) {
  const std::string kind = op.attributes().String("approximate", "none");
  if (kind == "none") return Unary<kGelu, ADDNORM_FLOAT_TYPES>(op);
  if (kind == "tanh") return Unary<kTanhGelu, ADDNORM_FLOAT_TYPES>(op);
  return OpContext::Invalid("approximate is '{}', expected none or tanh",
                            ir::Printable(kind));
}

// ---- functions of two operands

constexpr auto kPRelu = []<typename T>(T x, T slope) -> T {
  return x < 0 ? WrappingMultiply(slope, x) : x;
};
constexpr auto kBiasGelu = [](auto x, auto bias) { return kGelu(x + bias); };
constexpr auto kBiasTanhGelu = [](auto x, auto bias) {
  return kTanhGelu(x + bias);
};

// A plan whose result has the first operand's shape.
absl::StatusOr<BroadcastPlan> PlanLikeFirst(const OpContext& op) {
  RETURN_IF_ERROR(RequireAlike(op, 2));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(BroadcastPlan plan, BroadcastPlan::Of({&x, &op.input(1)}));
  if (plan.dims() != x.dims()) {
    return OpContext::Invalid("operand 1 is {}, which does not broadcast to {}",
                              Describe(op.input(1)), Describe(x));
  }
  return plan;
}

absl::Status PRelu(OpContext& op) {
  ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanLikeFirst(op));
  return MapBinary<void, ADDNORM_NUMBER_TYPES>(op, plan, kPRelu, kMemoryGrain);
}

template <const auto& kFunction>
absl::Status WithBias(OpContext& op) {
  ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanLikeFirst(op));
  const Tensor& x = op.input(0);
  const Tensor& bias = op.input(1);
  if (x.rank() == 0 || bias.dims() != Dims{x.dims().back()}) {
    return OpContext::Invalid("the bias is {}, expected a row of {}",
                              Describe(bias), Describe(x));
  }
  return MapBinary<void, ADDNORM_FLOAT_TYPES>(op, plan, kFunction, kMathGrain);
}

absl::Status FastGelu(OpContext& op) {
  return op.has_input(1) ? WithBias<kBiasTanhGelu>(op)
                         : Unary<kTanhGelu, ADDNORM_FLOAT_TYPES>(op);
}

absl::Status SwiGlu(OpContext& op) {
  ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanLikeFirst(op));
  if (op.input(0).dims() != op.input(1).dims()) {
    return OpContext::Invalid("operands are {} and {}, expected one shape",
                              Describe(op.input(0)), Describe(op.input(1)));
  }
  return MapBinary<void, ADDNORM_FLOAT_TYPES>(op, plan, Swish(op), kMathGrain);
}

constexpr std::string_view kMicrosoft = "com.microsoft";

constexpr OpRow kRows[] = {
    {"", "Celu", UnaryWith<Celu, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Elu", UnaryWith<Elu, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Gelu", Gelu, {{0, 0}}},
    {"", "HardSigmoid", UnaryWith<HardSigmoid, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "HardSwish", Unary<kHardSwish, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "LeakyRelu", UnaryWith<LeakyRelu, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Mish", Unary<kMish, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "PRelu", PRelu, {{0, 0}}},
    {"", "Relu", Unary<kRelu, ADDNORM_NUMBER_TYPES>, {{0, 0}}},
    {"", "Selu", UnaryWith<Selu, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Sigmoid", Unary<kSigmoid, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Softplus", Unary<kSoftplus, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Softsign", Unary<kSoftsign, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "SwiGLU", SwiGlu, {{0, 0}, {0, 1}}},
    {"", "Swish", UnaryWith<Swish, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"",
     "ThresholdedRelu",
     UnaryWith<ThresholdedRelu, ADDNORM_FLOAT_TYPES>,
     {{0, 0}}},
    {kMicrosoft, "BiasGelu", WithBias<kBiasGelu>, {{0, 0}}},
    {kMicrosoft, "FastGelu", FastGelu, {{0, 0}}},
    {kMicrosoft, "Gelu", Unary<kGelu, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {kMicrosoft,
     "QuickGelu",
     UnaryWith<QuickGelu, ADDNORM_FLOAT_TYPES>,
     {{0, 0}}},
};

}  // namespace

OpTable ActivationOps() { return kRows; }

}  // namespace addnorm::runtime
