// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/scalar_steps.h"

#include <cmath>

#include "runtime/element_cast.h"
#include "runtime/element_types.h"
#include "runtime/power.h"

namespace addnorm::runtime {
namespace {

// What the call gives for the steps.
struct Numbers {
  int64_t length;
  double epsilon;
};

// A constant of the recipe, or epsilon, in the type of the step.
template <typename T>
ComputeType<T> Constant(double value) {
  return Widen(CastElement<T>(value));
}

template <typename T>
ComputeType<T> Compute(const ScalarStep& step, ComputeType<T> v,
                       const Numbers& numbers) {
  using C = ComputeType<T>;
  using Op = ScalarStep::Op;
  const C constant = Constant<T>(step.constant);
  switch (step.op) {
    case Op::kDivideByLength:
      return v / static_cast<C>(numbers.length);
    case Op::kAdd:
      return v + constant;
    case Op::kAddEpsilon:
      return v + Constant<T>(numbers.epsilon);
    case Op::kMultiply:
      return v * constant;
    case Op::kDivide:
      return v / constant;
    case Op::kDivideInto:
      return constant / v;
    case Op::kSquareRoot:
      return std::sqrt(v);
    case Op::kReciprocal:
      return C{1} / v;
    case Op::kPower:
      return Power(v, constant);
    case Op::kCast:
      break;
  }
  return v;
}

template <typename T>
double Step(const ScalarStep& step, double v, const Numbers& numbers) {
  const ComputeType<T> result =
      Compute<T>(step, static_cast<ComputeType<T>>(v), numbers);
  return static_cast<double>(Widen(Rounded<T>(result)));
}

double Step(ir::DataType type, const ScalarStep& step, double v,
            const Numbers& numbers) {
  switch (type) {
    case ir::DataType::kDouble:
      return Step<double>(step, v, numbers);
    case ir::DataType::kFloat16:
      return Step<Half>(step, v, numbers);
    case ir::DataType::kBFloat16:
      return Step<BFloat16>(step, v, numbers);
    default:
      return Step<float>(step, v, numbers);
  }
}

// v as a value of the type.
double RoundTo(ir::DataType type, double v) {
  switch (type) {
    case ir::DataType::kDouble:
      return v;
    case ir::DataType::kFloat16:
      return static_cast<double>(Widen(CastElement<Half>(v)));
    case ir::DataType::kBFloat16:
      return static_cast<double>(Widen(CastElement<BFloat16>(v)));
    default:
      return static_cast<double>(static_cast<float>(v));
  }
}

}  // namespace

double RowFactor(const RmsNormRecipe& recipe, double sum, int64_t length,
                 double epsilon) {
  const Numbers numbers = {length, epsilon};
  ir::DataType type = recipe.sum_type();
  double v = sum;
  const auto& steps = recipe.scalar_steps;
  if (steps.empty() || steps[0].op != ScalarStep::Op::kDivideByLength)
    v = RoundTo(type, v);
  for (const ScalarStep& step : steps) {
    if (step.op == ScalarStep::Op::kCast) {
      type = step.type;
      v = RoundTo(type, v);
    } else {
      v = Step(type, step, v, numbers);
    }
  }
  return v;
}

ir::DataType FactorType(const RmsNormRecipe& recipe) {
  ir::DataType type = recipe.sum_type();
  for (const ScalarStep& step : recipe.scalar_steps) {
    if (step.op == ScalarStep::Op::kCast) type = step.type;
  }
  return type;
}

}  // namespace addnorm::runtime
