// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions of one element without parameters, Clip and Shrink, and the ops
// that hand their operand on: Identity, Dropout. Transcendental functions are
// the C library's, so their last bits may differ between C libraries.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/element_cast.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/groups.h"
#include "runtime/wrapping.h"

namespace addnorm::runtime {
namespace {

constexpr auto kAcos = [](auto x) { return std::acos(x); };
constexpr auto kAcosh = [](auto x) { return std::acosh(x); };
constexpr auto kAsin = [](auto x) { return std::asin(x); };
constexpr auto kAsinh = [](auto x) { return std::asinh(x); };
constexpr auto kAtan = [](auto x) { return std::atan(x); };
constexpr auto kAtanh = [](auto x) { return std::atanh(x); };
constexpr auto kCeil = [](auto x) { return std::ceil(x); };
constexpr auto kCos = [](auto x) { return std::cos(x); };
constexpr auto kCosh = [](auto x) { return std::cosh(x); };
constexpr auto kErf = [](auto x) { return std::erf(x); };
constexpr auto kExp = [](auto x) { return std::exp(x); };
constexpr auto kFloor = [](auto x) { return std::floor(x); };
constexpr auto kLog = [](auto x) { return std::log(x); };
constexpr auto kReciprocal =
    WithRows<UnaryOp::kReciprocal>([]<typename T>(T x) { return T{1} / x; });
// Halves to even: the rounding mode is the nearest (float_environment.h).
constexpr auto kRound = [](auto x) { return std::nearbyint(x); };
constexpr auto kSin = [](auto x) { return std::sin(x); };
constexpr auto kSinh = [](auto x) { return std::sinh(x); };
constexpr auto kSqrt =
    WithRows<UnaryOp::kSquareRoot>([](auto x) { return std::sqrt(x); });
constexpr auto kTan = [](auto x) { return std::tan(x); };
constexpr auto kTanh = [](auto x) { return std::tanh(x); };

// The least integer has no counterpart: it wraps around to itself.
constexpr auto kNeg = WithRows<UnaryOp::kNegate>([]<typename T>(T x) -> T {
  if constexpr (std::is_floating_point_v<T>) {
    return -x;
  } else {
    return WrappingSubtract(T{0}, x);
  }
});
constexpr auto kAbs = []<typename T>(T x) -> T {
  if constexpr (std::is_floating_point_v<T>) {
    return std::abs(x);
  } else {
    return x < 0 ? kNeg(x) : x;
  }
};
constexpr auto kSign = []<typename T>(T x) -> T {
  if (x != x) return x;
  return static_cast<T>(static_cast<int>(x > 0) - static_cast<int>(x < 0));
};

// ---- Clip

// The bound that operand i gives, or else attribute or limit.
template <typename T>
absl::StatusOr<ComputeType<T>> Bound(const OpContext& op, size_t i,
                                     std::string_view attribute,
                                     float unbounded) {
  using Value = ComputeType<T>;
  if (op.opset() < 11)
    return CastElement<Value>(op.attributes().Float(attribute, unbounded));
  if (!op.has_input(i)) {
    using Limits = std::numeric_limits<Value>;
    return unbounded < 0 ? Limits::lowest() : Limits::max();
  }
  const Tensor& bound = op.input(i);
  if (bound.count() != 1 || bound.type() != op.input(0).type()) {
    return OpContext::Invalid("{} is {}, expected one element of type {}",
                              attribute, Describe(bound),
                              ir::DataTypeName(op.input(0).type()));
  }
  return Widen(*bound.data<T>());
}

absl::Status Clip(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  constexpr float kUnbounded = std::numeric_limits<float>::max();
  const auto clip = [&]<typename T>() -> absl::Status {
    ASSIGN_OR_RETURN(const auto least, Bound<T>(op, 1, "min", -kUnbounded));
    ASSIGN_OR_RETURN(const auto most, Bound<T>(op, 2, "max", kUnbounded));
    // NaN is neither less nor more. `most` wins where it is less than `least`.
    const auto clipped = [least, most](auto x) {
      const auto raised = x < least ? least : x;
      return raised > most ? most : raised;
    };
    return MapUnary<void, T>(op, clipped, kMemoryGrain);
  };
  return op.ForType<ADDNORM_NUMBER_TYPES>(op.input(0), clip);
}

// ---- Shrink

class ShrinkFunction {
 public:
  explicit ShrinkFunction(const OpContext& op)
      : bias_(op.attributes().Float("bias", 0)),
        lambda_(op.attributes().Float("lambd", 0.5f)) {}

  // Integers by way of double, because the parameters are no integers.
  template <typename T>
  T operator()(T x) const {
    using Value = std::conditional_t<std::is_integral_v<T>, double, T>;
    const Value value = static_cast<Value>(x), bias = static_cast<Value>(bias_),
                lambda = static_cast<Value>(lambda_);
    if (value < -lambda) return CastElement<T>(value + bias);
    if (value > lambda) return CastElement<T>(value - bias);
    return T{0};
  }

 private:
  float bias_, lambda_;
};

// ---- Identity, Dropout

absl::Status Identity(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  op.SetOutput(0, op.input(0));
  return absl::OkStatus();
}

// True where elements would be dropped at random.
absl::StatusOr<bool> Drops(const OpContext& op) {
  if (!op.has_input(2)) return false;
  const Tensor& training = op.input(2);
  if (training.type() != ir::DataType::kBool || training.count() != 1) {
    return OpContext::Invalid("training_mode is {}, expected one bool",
                              Describe(training));
  }
  if (!*training.data<bool>()) return false;
  if (!op.has_input(1)) return true;
  const Tensor& ratio = op.input(1);
  if (ratio.count() != 1)
    return OpContext::Invalid("ratio is {}, expected one element",
                              Describe(ratio));
  ASSIGN_OR_RETURN(const ElementCast cast,
                   ElementCast::Create(ratio.type(), ir::DataType::kDouble));
  double value = 0;
  cast.Run(ratio.data<std::byte>(), &value, 1);
  return value != 0;
}

absl::Status Dropout(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  ASSIGN_OR_RETURN(const bool drops, Drops(op));
  if (drops)
    return OpContext::Unsupported("dropping elements at random (training)");
  const Tensor& x = op.input(0);
  if (op.wants_output(1)) {
    // Before opset 10 the mask has the operand's type.
    const ir::DataType type = op.opset() < 10 ? x.type() : ir::DataType::kBool;
    ASSIGN_OR_RETURN(Tensor ones, op.Scratch(ir::DataType::kBool, x.dims()));
    std::fill_n(ones.mutable_data<bool>(), ones.count(), true);
    ASSIGN_OR_RETURN(const ElementCast cast,
                     ElementCast::Create(ones.type(), type));
    ASSIGN_OR_RETURN(Tensor * mask, op.Output(1, type, x.dims()));
    cast.Run(ones, *mask, op.threads());
  }
  op.SetOutput(0, x);
  return absl::OkStatus();
}

#define ADDNORM_SIGNED_TYPES \
  ADDNORM_FLOAT_TYPES, int8_t, int16_t, int32_t, int64_t

constexpr OpRow kRows[] = {
    {"", "Abs", Unary<kAbs, ADDNORM_NUMBER_TYPES>, {{0, 0}}},
    {"", "Acos", Unary<kAcos, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Acosh", Unary<kAcosh, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Asin", Unary<kAsin, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Asinh", Unary<kAsinh, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Atan", Unary<kAtan, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Atanh", Unary<kAtanh, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Ceil", Unary<kCeil, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Clip", Clip, {{0, 0}}},
    {"", "Cos", Unary<kCos, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Cosh", Unary<kCosh, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Dropout", Dropout},
    {"", "Erf", Unary<kErf, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Exp", Unary<kExp, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Floor", Unary<kFloor, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Identity", Identity},
    {"", "Log", Unary<kLog, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Neg", Unary<kNeg, ADDNORM_SIGNED_TYPES>, {{0, 0}}},
    {"", "Reciprocal", Unary<kReciprocal, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Round", Unary<kRound, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Shrink", UnaryWith<ShrinkFunction, ADDNORM_NUMBER_TYPES>, {{0, 0}}},
    {"", "Sign", Unary<kSign, ADDNORM_NUMBER_TYPES>, {{0, 0}}},
    {"", "Sin", Unary<kSin, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Sinh", Unary<kSinh, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Sqrt", Unary<kSqrt, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Tan", Unary<kTan, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
    {"", "Tanh", Unary<kTanh, ADDNORM_FLOAT_TYPES>, {{0, 0}}},
};

}  // namespace

OpTable UnaryOps() { return kRows; }

}  // namespace addnorm::runtime
