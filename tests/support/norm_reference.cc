// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/norm_reference.h"

#include <cmath>

#include "runtime/kernels/norm_recipes.h"
#include "runtime/tensor.h"

namespace addnorm::tests {
namespace {

using namespace runtime;
using ir::DataType;

constexpr DataType kF32 = DataType::kFloat, kF64 = DataType::kDouble,
                   kF16 = DataType::kFloat16, kBF16 = DataType::kBFloat16;

// ---- recipes

ScalarStep Scalar(ScalarStep::Op op, double constant = 0) {
  return {.op = op, .constant = constant};
}
RowStep To(DataType type) { return {RowStep::Op::kCast, type}; }

constexpr RowStep kTimesFactor = {RowStep::Op::kTimesFactor},
                  kOverFactor = {RowStep::Op::kOverFactor},
                  kTimesScale = {RowStep::Op::kTimesScale},
                  kTimesScaledFactor = {RowStep::Op::kTimesScaledFactor};

const std::vector<ScalarStep> kRoot = {Scalar(ScalarStep::Op::kDivideByLength),
                                       Scalar(ScalarStep::Op::kAddEpsilon),
                                       Scalar(ScalarStep::Op::kSquareRoot)};

std::vector<ScalarStep> InverseRoot() {
  std::vector<ScalarStep> steps = kRoot;
  steps.push_back(Scalar(ScalarStep::Op::kReciprocal));
  return steps;
}

// A sum that is divided and shifted by constants, and every other step.
std::vector<ScalarStep> Roundabout(DataType type) {
  return {Scalar(ScalarStep::Op::kMultiply, 0x1p-9),
          Scalar(ScalarStep::Op::kDivide, 1.5),
          Scalar(ScalarStep::Op::kAdd, 0x1p-7),
          {.op = ScalarStep::Op::kCast, .type = DataType::kDouble},
          Scalar(ScalarStep::Op::kDivideInto, 3),
          {.op = ScalarStep::Op::kCast, .type = type},
          Scalar(ScalarStep::Op::kPower, 2)};
}

}  // namespace

std::vector<RmsNormRecipe> UniformRecipes(DataType t) {
  const std::vector<ScalarStep> inverse = InverseRoot();
  return {{t, t, inverse, {kTimesFactor}, {}},
          {t, t, kRoot, {kOverFactor}, {}},
          {t, t, inverse, {kTimesFactor, kTimesScale}, {t}},
          {t, t, kRoot, {kOverFactor, kTimesScale}, {t}},
          {t, t, inverse, {kTimesScale, kTimesFactor}, {t}},
          {t, t, inverse, {kTimesScaledFactor}, {t}},
          {t, t, Roundabout(t), {kTimesFactor, kTimesScale}, {t}},
          {t, t, inverse, {kTimesScale, kTimesFactor, kTimesScale}, {t}}};
}

namespace {

// A half type h that is squared and scaled in float, and variations that have
// no loops of their own.
std::vector<RmsNormRecipe> MixedRecipes(DataType h) {
  const std::vector<ScalarStep> inverse = InverseRoot();
  std::vector<ScalarStep> cast = inverse;
  cast.push_back({.op = ScalarStep::Op::kCast, .type = h});
  return {
      {h, kF32, inverse, {To(kF32), kTimesFactor, To(h), kTimesScale}, {h}},
      {h, kF32, inverse, {To(kF32), kTimesFactor, kTimesScale, To(h)}, {kF32}},
      {h,
       kF32,
       inverse,
       {To(kF32), kTimesFactor, kTimesScale, To(h)},
       {h, kF32}},
      {h, kF32, kRoot, {To(kF32), kOverFactor, To(h), kTimesScale}, {kF32, h}},
      {h, kF32, inverse, {To(kF32), kTimesFactor, To(h)}, {}},
      {h, kF32, inverse, {To(kF32), kTimesScaledFactor, To(h)}, {h, kF32}},
      {h, kF32, cast, {kTimesFactor, kTimesScale}, {h}},
      {h, kF32, inverse, {To(kF32), kTimesScale, kTimesFactor}, {h, kF32}},
      {h, kF64, inverse, {To(kF64), kTimesFactor, To(h)}, {}},
      {kF32, kF32, inverse, {To(h), To(kF32), kTimesFactor, To(h)}, {}},
      {kF32, kF32, inverse, {kTimesFactor, kTimesScale, To(h)}, {h, kF32}},
      {kF64, kF32, inverse, {To(kF32), kTimesFactor, To(h)}, {}},
      RmsNormalizationRecipe(h, h, kF32),
      RmsNormalizationRecipe(h, kF32, kF32),
      SimplifiedLayerNormalizationRecipe(h, h)};
}

}  // namespace

std::vector<RmsNormRecipe> AllRecipes() {
  std::vector<RmsNormRecipe> recipes;
  const auto add = [&](const std::vector<RmsNormRecipe>& more) {
    recipes.insert(recipes.end(), more.begin(), more.end());
  };
  for (const DataType type : {kF32, kF64, kF16, kBF16})
    add(UniformRecipes(type));
  for (const DataType type : {kF16, kBF16}) add(MixedRecipes(type));
  return recipes;
}

// ---- the reference: doubles that hold values of a type

// A float operation whose double result is rounded here is rounded correctly:
// a double has more than twice the digits.
double Round(DataType type, double v) {
  if (type == kF64) return Canonical(v);
  const float f = Canonical(static_cast<float>(v));
  if (type == kF16) return static_cast<double>(Widen(Narrow<Half>(f)));
  if (type == kBF16) return static_cast<double>(Widen(Narrow<BFloat16>(f)));
  return static_cast<double>(f);
}
namespace {

// But casts from double round once.
double Cast(DataType from, DataType to, double v) {
  if (from == kF64 && to == kF16)
    return static_cast<double>(Widen(CastElement<Half>(v)));
  if (from == kF64 && to == kBF16)
    return static_cast<double>(Widen(CastElement<BFloat16>(v)));
  return Round(to, v);
}

}  // namespace

double Factor(const RmsNormRecipe& recipe, double v, size_t n, double epsilon) {
  using Op = ScalarStep::Op;
  DataType type = recipe.square_type;
  if (recipe.scalar_steps[0].op != Op::kDivideByLength) v = Round(type, v);
  for (const ScalarStep& step : recipe.scalar_steps) {
    const double c = step.constant;
    switch (step.op) {
      case Op::kDivideByLength:
        v = Round(type, v / static_cast<double>(n));
        break;
      case Op::kAdd:
        v = Round(type, v + c);
        break;
      case Op::kAddEpsilon:
        v = Round(type, v + Round(type, epsilon));
        break;
      case Op::kMultiply:
        v = Round(type, v * c);
        break;
      case Op::kDivide:
        v = Round(type, v / c);
        break;
      case Op::kDivideInto:
        v = Round(type, c / v);
        break;
      case Op::kSquareRoot:
        v = Round(type, std::sqrt(v));
        break;
      case Op::kReciprocal:
        v = Round(type, 1 / v);
        break;
      case Op::kPower:
        v = Round(type, v * v);
        break;
      case Op::kCast:
        v = Cast(type, step.type, v);
        type = step.type;
        break;
    }
  }
  return v;
}

double SumOfSquares(const RmsNormRecipe& recipe, const std::vector<double>& x) {
  const DataType type = recipe.square_type, sum = type == kF64 ? kF64 : kF32;
  double lanes[32] = {};
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = Cast(recipe.type, type, x[i]);
    lanes[i % 32] = Round(sum, lanes[i % 32] + Round(type, v * v));
  }
  for (int h = 16; h > 0; h /= 2)
    for (int k = 0; k < h; ++k) lanes[k] = Round(sum, lanes[k] + lanes[k + h]);
  return lanes[0];
}

double Normalised(const RmsNormRecipe& recipe, double v, double factor,
                  double scale) {
  using Op = RowStep::Op;
  DataType type = recipe.type;
  for (size_t i = 1; i < recipe.scale_types.size(); ++i)
    scale = Cast(recipe.scale_types[i - 1], recipe.scale_types[i], scale);
  for (const RowStep& step : recipe.row_steps) {
    switch (step.op) {
      case Op::kTimesFactor:
        v = Round(type, v * factor);
        break;
      case Op::kOverFactor:
        v = Round(type, v / factor);
        break;
      case Op::kTimesScale:
        v = Round(type, v * scale);
        break;
      case Op::kTimesScaledFactor:
        v = Round(type, v * Round(type, factor * scale));
        break;
      case Op::kCast:
        v = Cast(type, step.type, v);
        type = step.type;
        break;
    }
  }
  return v;
}

// ---- rows of any type in memory

double Get(DataType type, const std::byte* at, size_t i) {
  switch (type) {
    case kF64:
      return reinterpret_cast<const double*>(at)[i];
    case kF16:
      return Widen(reinterpret_cast<const Half*>(at)[i]);
    case kBF16:
      return Widen(reinterpret_cast<const BFloat16*>(at)[i]);
    default:
      return reinterpret_cast<const float*>(at)[i];
  }
}
void Set(DataType type, std::byte* at, size_t i, double v) {
  switch (type) {
    case kF64:
      reinterpret_cast<double*>(at)[i] = v;
      break;
    case kF16:
      reinterpret_cast<Half*>(at)[i] = CastElement<Half>(v);
      break;
    case kBF16:
      reinterpret_cast<BFloat16*>(at)[i] = CastElement<BFloat16>(v);
      break;
    default:
      reinterpret_cast<float*>(at)[i] = static_cast<float>(v);
  }
}

std::vector<std::byte> RandomRows(DataType type, Data data, size_t n,
                                  std::mt19937& random) {
  std::vector<std::byte> bytes(n * ElementSize(type));
  for (size_t i = 0; i < n; ++i) {
    const double v = type == kF16    ? Widen(Element<Half>(data, random))
                     : type == kBF16 ? Widen(Element<BFloat16>(data, random))
                                     : Element<float>(data, random);
    Set(type, bytes.data(), i, v);
  }
  return bytes;
}

}  // namespace addnorm::tests
