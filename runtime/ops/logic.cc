// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops that give or take bools: And, Or, Xor, Not, comparisons, Where, IsNaN,
// IsInf.
#include <array>
#include <cmath>

#include "runtime/float8.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/groups.h"

namespace addnorm::runtime {
namespace {

constexpr auto kAnd = [](bool a, bool b) { return a && b; };
constexpr auto kOr = [](bool a, bool b) { return a || b; };
constexpr auto kXor = [](bool a, bool b) { return a != b; };
constexpr auto kNot = [](bool a) { return !a; };

constexpr auto kEqual = [](auto a, auto b) { return a == b; };
constexpr auto kGreater = [](auto a, auto b) { return a > b; };
constexpr auto kGreaterOrEqual = [](auto a, auto b) { return a >= b; };
constexpr auto kLess = [](auto a, auto b) { return a < b; };
constexpr auto kLessOrEqual = [](auto a, auto b) { return a <= b; };

// ---- IsNaN, IsInf

#define ADDNORM_FLOAT8_TYPES \
  Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ

template <typename T>
T AsFloat(T value) {
  return value;
}
template <ir::DataType kType>
float AsFloat(Stored<uint8_t, kType> value) {
  return FloatFromSmall(kType, value.bits);
}

constexpr auto kIsNaN = [](auto x) { return std::isnan(AsFloat(x)); };

absl::Status IsNaN(OpContext& op) {
  return MapUnary<bool, ADDNORM_FLOAT_TYPES, ADDNORM_FLOAT8_TYPES>(
      op, kIsNaN, kMemoryGrain);
}

absl::Status IsInf(OpContext& op) {
  const bool negative = op.attributes().Int("detect_negative", 1) != 0;
  const bool positive = op.attributes().Int("detect_positive", 1) != 0;
  const auto is_inf = [=](auto x) {
    const auto value = AsFloat(x);
    return std::isinf(value) && (value < 0 ? negative : positive);
  };
  return MapUnary<bool, ADDNORM_FLOAT_TYPES, ADDNORM_FLOAT8_TYPES>(
      op, is_inf, kMemoryGrain);
}

// ---- Where: elements are moved, so only their size matters

struct WhereSteps {
  int64_t condition, x, y;
};

template <typename T>
void WhereRun(const bool* condition, const T* x, const T* y, T* result,
              int64_t length, const WhereSteps& step) {
  // The usual runs, with steps that the compiler knows.
  const auto run = [&](auto x_step, auto y_step) {
    ADDNORM_VECTORISE
    for (int64_t i = 0; i < length; ++i)
      result[i] = condition[i] ? x[i * x_step] : y[i * y_step];
  };
  using Along = std::integral_constant<int64_t, 1>;
  using Still = std::integral_constant<int64_t, 0>;
  if (step.condition == 0) {
    const T* taken = *condition ? x : y;
    const int64_t taken_step = *condition ? step.x : step.y;
    for (int64_t i = 0; i < length; ++i) result[i] = taken[i * taken_step];
  } else if (step.x != 0 && step.y != 0) {
    run(Along(), Along());
  } else if (step.x != 0) {
    run(Along(), Still());
  } else if (step.y != 0) {
    run(Still(), Along());
  } else {
    run(Still(), Still());
  }
}

template <typename T>
void ComputeWhere(OpContext& op, const BroadcastPlan& plan, Tensor& result) {
  const Tensor& condition = op.input(0);
  const Tensor& x = op.input(1);
  const Tensor& y = op.input(2);
  const WhereSteps steps = {plan.step(0), plan.step(1), plan.step(2)};
  const auto run = [&](int64_t out, const int64_t* at, int64_t length) {
    WhereRun(condition.data<bool>() + at[0], x.data<T>() + at[1],
             y.data<T>() + at[2], result.mutable_data<T>() + out, length,
             steps);
  };
  op.threads().ParallelFor(
      plan.count(), kMemoryGrain,
      [&](int64_t from, int64_t to) { plan.ForEachRun(from, to, run); });
}

absl::Status Where(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(3));
  const Tensor& condition = op.input(0);
  const Tensor& x = op.input(1);
  const Tensor& y = op.input(2);
  if (condition.type() != ir::DataType::kBool || x.type() != y.type()) {
    return OpContext::Invalid(
        "operands are {}, {} and {}, expected bool and two of one type",
        Describe(condition), Describe(x), Describe(y));
  }
  ASSIGN_OR_RETURN(const BroadcastPlan plan,
                   BroadcastPlan::Of({&condition, &x, &y}));
  ASSIGN_OR_RETURN(Tensor * result, op.Output(0, x.type(), plan.dims()));
  switch (ElementSize(x.type())) {
    case 1:
      ComputeWhere<uint8_t>(op, plan, *result);
      break;
    case 2:
      ComputeWhere<uint16_t>(op, plan, *result);
      break;
    case 4:
      ComputeWhere<uint32_t>(op, plan, *result);
      break;
    case 8:
      ComputeWhere<uint64_t>(op, plan, *result);
      break;
    default:
      return op.UnsupportedType(x.type());
  }
  return absl::OkStatus();
}

constexpr OpRow kRows[] = {
    {"", "And", Compare<kAnd, bool>, {{0, 0}, {0, 1}}},
    {"", "Equal", Compare<kEqual, ADDNORM_NUMBER_TYPES, bool>},
    {"", "Greater", Compare<kGreater, ADDNORM_NUMBER_TYPES>},
    {"", "GreaterOrEqual", Compare<kGreaterOrEqual, ADDNORM_NUMBER_TYPES>},
    {"", "IsInf", IsInf},
    {"", "IsNaN", IsNaN},
    {"", "Less", Compare<kLess, ADDNORM_NUMBER_TYPES>},
    {"", "LessOrEqual", Compare<kLessOrEqual, ADDNORM_NUMBER_TYPES>},
    {"", "Not", Unary<kNot, bool>, {{0, 0}}},
    {"", "Or", Compare<kOr, bool>, {{0, 0}, {0, 1}}},
    {"", "Where", Where, {{0, 1}, {0, 2}}},
    {"", "Xor", Compare<kXor, bool>, {{0, 0}, {0, 1}}},
};

}  // namespace

OpTable LogicOps() { return kRows; }

}  // namespace addnorm::runtime
