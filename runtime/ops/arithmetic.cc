// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Add, Sub, Mul, Div, Mod and Pow. Integers wrap around; a division of integers
// by zero is an error, where a processor would trap or not, as it likes.
#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/element_cast.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/groups.h"
#include "runtime/power.h"
#include "runtime/wrapping.h"

namespace addnorm::runtime {
namespace {

constexpr auto kAdd =
    WithRows<BinaryOp::kAdd>([](auto a, auto b) { return WrappingAdd(a, b); });
constexpr auto kSub = WithRows<BinaryOp::kSubtract>(
    [](auto a, auto b) { return WrappingSubtract(a, b); });
constexpr auto kMul = WithRows<BinaryOp::kMultiply>(
    [](auto a, auto b) { return WrappingMultiply(a, b); });

// The least integer over -1 has no quotient: it wraps around to itself.
template <typename T>
bool IsMinusOne(T value) {
  return std::is_signed_v<T> && value == static_cast<T>(-1);
}

constexpr auto kDiv =
    WithRows<BinaryOp::kDivide>([]<typename T>(T a, T b) -> T {
      if constexpr (std::is_floating_point_v<T>) {
        return a / b;
      } else {
        return IsMinusOne(b) ? kSub(T{0}, a) : static_cast<T>(a / b);
      }
    });

// The remainder has the sign of a.
constexpr auto kTruncatedMod = []<typename T>(T a, T b) -> T {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(a, b);
  } else {
    return IsMinusOne(b) ? T{0} : static_cast<T>(a % b);
  }
};

// The remainder has the sign of b, zeros of floats too.
constexpr auto kFlooredMod = []<typename T>(T a, T b) -> T {
  const T remainder = kTruncatedMod(a, b);
  if constexpr (std::is_floating_point_v<T>) {
    if (remainder == 0) return std::copysign(T{0}, b);
  }
  if (remainder == 0 || (remainder < 0) == (b < 0)) return remainder;
  return static_cast<T>(remainder + b);
};

absl::Status RequireNoIntegerZero(const OpContext& op, const Tensor& divisor) {
  absl::Status status = op.ForType<ADDNORM_INTEGER_TYPES>(
      divisor, [&]<typename T>() -> absl::Status {
        const auto elements = divisor.elements<T>();
        if (std::find(elements.begin(), elements.end(), T{0}) == elements.end())
          return absl::OkStatus();
        return OpContext::Invalid("the divisor {} has a zero",
                                  Describe(divisor));
      });
  return absl::IsUnimplemented(status) ? absl::OkStatus() : status;
}

absl::Status Div(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  RETURN_IF_ERROR(RequireNoIntegerZero(op, op.input(1)));
  return Binary<kDiv, ADDNORM_NUMBER_TYPES>(op);
}

absl::Status Mod(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  RETURN_IF_ERROR(RequireNoIntegerZero(op, op.input(1)));
  return op.attributes().Int("fmod", 0) == 0
             ? Binary<kFlooredMod, ADDNORM_NUMBER_TYPES>(op)
             : Binary<kTruncatedMod, ADDNORM_NUMBER_TYPES>(op);
}

// ---- Pow

#define ADDNORM_POWER_BASES ADDNORM_FLOAT_TYPES, int32_t, int64_t

bool IsInteger(ir::DataType type) {
  return type != ir::DataType::kDouble && !ir::IsFloat(type);
}

// The type in which a power is computed: of integers in int64; of two types of
// at most 32 floating-point bits in float; of all other mixtures in double.
ir::DataType PowerType(ir::DataType base, ir::DataType exponent) {
  if (IsInteger(base) && IsInteger(exponent)) return ir::DataType::kInt64;
  const auto needs_double = [](ir::DataType type) {
    return IsInteger(type) || type == ir::DataType::kDouble;
  };
  return needs_double(base) || needs_double(exponent) ? ir::DataType::kDouble
                                                      : ir::DataType::kFloat;
}

// The exponents in the computing type. An unsigned one of 64 bits that int64
// cannot hold becomes the greatest that it can.
absl::StatusOr<Tensor> Exponents(OpContext& op, ir::DataType type) {
  const Tensor& given = op.input(1);
  if (given.type() == type) return given;
  ASSIGN_OR_RETURN(const ElementCast cast,
                   ElementCast::Create(given.type(), type));
  ASSIGN_OR_RETURN(Tensor exponents, op.Scratch(type, given.dims()));
  cast.Run(given, exponents, op.threads());
  if (given.type() == ir::DataType::kUint64 && type == ir::DataType::kInt64) {
    for (int64_t& exponent : exponents.mutable_elements<int64_t>()) {
      if (exponent < 0) exponent = std::numeric_limits<int64_t>::max();
    }
  }
  return exponents;
}

// T: of the base and the result; C: of the exponents, in which it computes.
template <typename T, typename C>
T PowerElement(T base, C exponent) {
  const C power = Power(CastElement<C>(base), exponent);
  return CastElement<T>(Canonical(power));
}

template <typename T, typename C>
absl::Status ComputePower(OpContext& op, const BroadcastPlan& plan,
                          const Tensor& exponents) {
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), plan.dims()));
  const auto run = [&](int64_t out, const int64_t* at, int64_t length) {
    const T* base = x.data<T>() + at[0];
    const C* exponent = exponents.data<C>() + at[1];
    T* result = y->mutable_data<T>() + out;
    for (int64_t i = 0; i < length; ++i)
      result[i] =
          PowerElement(base[i * plan.step(0)], exponent[i * plan.step(1)]);
  };
  op.threads().ParallelFor(
      plan.count(), kMathGrain,
      [&](int64_t from, int64_t to) { plan.ForEachRun(from, to, run); });
  return absl::OkStatus();
}

// x * x, by the run that multiplies.
absl::Status Square(OpContext& op, const Dims& dims) {
  const Tensor& x = op.input(0);
  return op.ForType<ADDNORM_POWER_BASES>(x, [&]<typename T>() -> absl::Status {
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), dims));
    op.threads().ParallelFor(
        x.count(), kMemoryGrain, [&](int64_t from, int64_t to) {
          const T* elements = x.data<T>() + from;
          BinaryRun(kMul, elements, 1, elements, 1, y->mutable_data<T>() + from,
                    to - from);
        });
    return absl::OkStatus();
  });
}

bool IsSquare(const Tensor& exponents) {
  if (exponents.count() != 1) return false;
  switch (exponents.type()) {
    case ir::DataType::kFloat:
      return *exponents.data<float>() == 2;
    case ir::DataType::kDouble:
      return *exponents.data<double>() == 2;
    default:
      return *exponents.data<int64_t>() == 2;
  }
}

absl::Status Pow(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const BroadcastPlan plan,
                   BroadcastPlan::Of({&x, &op.input(1)}));
  const ir::DataType type = PowerType(x.type(), op.input(1).type());
  ASSIGN_OR_RETURN(const Tensor exponents, Exponents(op, type));
  if (IsSquare(exponents)) return Square(op, plan.dims());
  return op.ForType<ADDNORM_POWER_BASES>(x, [&]<typename T>() {
    if (type == ir::DataType::kInt64)
      return ComputePower<T, int64_t>(op, plan, exponents);
    if (type == ir::DataType::kDouble)
      return ComputePower<T, double>(op, plan, exponents);
    return ComputePower<T, float>(op, plan, exponents);
  });
}

constexpr OpRow kRows[] = {
    {"", "Add", Binary<kAdd, ADDNORM_NUMBER_TYPES>, {{0, 0}, {0, 1}}},
    {"", "Div", Div, {{0, 0}, {0, 1}}},
    {"", "Mod", Mod, {{0, 0}, {0, 1}}},
    {"", "Mul", Binary<kMul, ADDNORM_NUMBER_TYPES>, {{0, 0}, {0, 1}}},
    {"", "Pow", Pow, {{0, 0}}},
    {"", "Sub", Binary<kSub, ADDNORM_NUMBER_TYPES>, {{0, 0}, {0, 1}}},
};

}  // namespace

OpTable ArithmeticOps() { return kRows; }

}  // namespace addnorm::runtime
