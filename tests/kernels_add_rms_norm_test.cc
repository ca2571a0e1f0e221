// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "runtime/kernels/add_rms_norm.h"
#include "runtime/kernels/norm_recipes.h"
#include "runtime/tensor.h"
#include "tests/support/catch.h"
#include "tests/support/rows.h"

namespace addnorm::runtime {
namespace {

using ir::DataType;
using tests::Data;
using tests::kAllData;
using tests::OnEachTarget;
using Bytes = std::vector<std::byte>;

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

// The forms in which everything is of one type.
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
// But casts from double round once.
double Cast(DataType from, DataType to, double v) {
  if (from == kF64 && to == kF16)
    return static_cast<double>(Widen(CastElement<Half>(v)));
  if (from == kF64 && to == kBF16)
    return static_cast<double>(Widen(CastElement<BFloat16>(v)));
  return Round(to, v);
}

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

Bytes RandomRows(DataType type, Data data, size_t n, std::mt19937& random) {
  Bytes bytes(n * ElementSize(type));
  for (size_t i = 0; i < n; ++i) {
    const double v = type == kF16 ? Widen(tests::Element<Half>(data, random))
                     : type == kBF16
                         ? Widen(tests::Element<BFloat16>(data, random))
                         : tests::Element<float>(data, random);
    Set(type, bytes.data(), i, v);
  }
  return bytes;
}

struct Case {
  RmsNormRecipe recipe;
  size_t rows, n;
  double epsilon;
  bool is_norm_only;
  Bytes a = {}, b = {}, scale = {}, sum = {}, y = {};  // the last two expected
};

void FillExpected(Case& c, DataType result) {
  c.sum.resize(c.a.size());
  c.y.resize(c.rows * c.n * ElementSize(result));
  const DataType type = c.recipe.type;
  for (size_t row = 0; row < c.rows; ++row) {
    std::vector<double> x(c.n);
    for (size_t i = 0; i < c.n; ++i) {
      const size_t at = row * c.n + i;
      x[i] = Get(type, c.a.data(), at);
      if (!c.is_norm_only) x[i] = Round(type, x[i] + Get(type, c.b.data(), at));
      Set(type, c.sum.data(), at, x[i]);
    }
    const double factor =
        Factor(c.recipe, SumOfSquares(c.recipe, x), c.n, c.epsilon);
    for (size_t i = 0; i < c.n; ++i) {
      const double scale =
          c.scale.empty() ? 0 : Get(c.recipe.scale_types[0], c.scale.data(), i);
      Set(result, c.y.data(), row * c.n + i,
          Normalised(c.recipe, x[i], factor, scale));
    }
  }
}

Case MakeCase(const RmsNormRecipe& recipe, size_t n, Data data,
              bool is_norm_only) {
  std::mt19937 random(static_cast<unsigned>(n) * 8 +
                      static_cast<unsigned>(data));
  Case c = {.recipe = recipe,
            .rows = 1 + n % 3,
            .n = n,
            .epsilon = data == Data::kZero ? 0 : static_cast<double>(1e-5f),
            .is_norm_only = is_norm_only};
  c.a = RandomRows(recipe.type, data, c.rows * n, random);
  c.b = RandomRows(recipe.type, data, c.rows * n, random);
  if (!recipe.scale_types.empty())
    c.scale = RandomRows(recipe.scale_types[0], Data::kNormal, n, random);
  return c;
}

// ---- ways to call the kernel

struct Way {
  enum class Place { kFresh, kSumOverA, kSumOverB, kNoSum, kNoSumOverA };
  Place place;
  Stores stores;
  int threads;
  size_t offset;  // in bytes, of every buffer
};

using Place = Way::Place;
constexpr Way kWays[] = {
    {Place::kFresh, Stores::kPlain, 1, 0},
    {Place::kSumOverA, Stores::kPlain, 2, 8},
    {Place::kSumOverB, Stores::kPlain, 3, 24},
    {Place::kNoSum, Stores::kPlain, 4, 0},
    {Place::kNoSumOverA, Stores::kPlain, 1, 40},
    {Place::kFresh, Stores::kStreaming, 2, 0},
    {Place::kFresh, Stores::kStreaming, 1, 8},
    {Place::kSumOverA, Stores::kStreaming, 1, 16},
    {Place::kNoSum, Stores::kStreaming, 1, 0},
};

// A copy of bytes at an offset from a cache line.
class Placed {
 public:
  Placed(const Bytes& bytes, size_t offset) : buffer_(bytes.size() + 128) {
    const auto at = reinterpret_cast<uintptr_t>(buffer_.data());
    data_ = buffer_.data() + (64 - at % 64) + offset;
    std::copy(bytes.begin(), bytes.end(), data_);
  }
  std::byte* data() { return data_; }

 private:
  Bytes buffer_;
  std::byte* data_;
};

bool Same(const std::byte* have, const Bytes& want) {
  return std::memcmp(have, want.data(), want.size()) == 0;
}

// Gives the number of bytes compared.
size_t CheckWay(const AddRmsNorm& norm, const Case& c, const Way& way) {
  static ThreadPool pools[] = {ThreadPool(1), ThreadPool(2), ThreadPool(3),
                               ThreadPool(4)};
  Placed a(c.a, way.offset), b(c.b, way.offset), sum(c.sum, way.offset),
      y(c.y, way.offset), scale(c.scale, way.offset);
  const bool same_size = c.a.size() == c.y.size();
  std::fill_n(sum.data(), c.sum.size(), std::byte{0x5a});
  std::fill_n(y.data(), c.y.size(), std::byte{0x5a});
  std::byte *to_sum = sum.data(), *to_y = y.data();
  if (way.place == Place::kSumOverA) to_sum = a.data();
  if (way.place == Place::kSumOverA && same_size) to_y = b.data();
  if (way.place == Place::kSumOverB) to_sum = b.data();
  if (way.place == Place::kSumOverB && same_size) to_y = a.data();
  if (way.place == Place::kNoSum || way.place == Place::kNoSumOverA)
    to_sum = nullptr;
  if (way.place == Place::kNoSumOverA && same_size) to_y = a.data();
  if (c.is_norm_only) to_sum = nullptr;
  AddRmsNormOperands operands = {
      .rows = static_cast<int64_t>(c.rows),
      .length = static_cast<int64_t>(c.n),
      .a = a.data(),
      .b = c.is_norm_only ? nullptr : b.data(),
      .scale = scale.data(),
      .scale_count = c.scale.empty() ? 0 : static_cast<int64_t>(c.n),
      .epsilon = c.epsilon,
      .sum = to_sum,
      .y = to_y,
      .stores = way.stores};
  if (c.is_norm_only && way.place == Place::kSumOverB) operands.y = y.data();
  REQUIRE(norm.Run(operands, pools[way.threads - 1]).ok());
  CHECK(Same(static_cast<std::byte*>(operands.y), c.y));
  if (to_sum != nullptr) CHECK(Same(to_sum, c.sum));
  return c.y.size() + (to_sum != nullptr ? c.sum.size() : 0);
}

constexpr size_t kLengths[] = {1,  2,  15,  16,  17,   31,  32,
                               33, 64, 100, 255, 1000, 4099};

size_t CheckRecipe(const RmsNormRecipe& recipe,
                   const std::vector<SimdTarget>& targets) {
  const auto norm = AddRmsNorm::Create(recipe);
  REQUIRE(norm.ok());
  size_t bytes = 0, next = 0;
  for (const size_t n : kLengths) {
    for (const Data data : kAllData) {
      Case c =
          MakeCase(recipe, n, data, (n + static_cast<size_t>(data)) % 4 == 0);
      FillExpected(c, norm->result_type());
      INFO(c.rows << " x " << n << ", data " << static_cast<int>(data)
                  << ", norm only " << c.is_norm_only);
      for (const SimdTarget& target : targets) {
        const UseSimdTarget use(target);
        // Two ways each time; over the cases all meet all.
        for (int i = 0; i < 2; ++i) {
          const size_t way = next++ % std::size(kWays);
          INFO(target.name << ", way " << way);
          bytes += CheckWay(*norm, c, kWays[way]);
        }
      }
    }
  }
  return bytes;
}

TEST_CASE("The fused norm gives the bits of its recipe, one op after the other",
          "[kernels]") {
  const std::vector<SimdTarget> targets = SimdTargets();
  size_t bytes = 0, recipe = 0;
  for (const RmsNormRecipe& r : AllRecipes()) {
    INFO("recipe " << recipe++);
    bytes += CheckRecipe(r, targets);
  }
  CHECK(bytes > 8'000'000);
}

}  // namespace
}  // namespace addnorm::runtime
