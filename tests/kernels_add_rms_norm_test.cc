// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/kernels/add_rms_norm.h"
#include "runtime/kernels/norm_recipes.h"
#include "runtime/tensor.h"
#include "tests/support/catch.h"
#include "tests/support/norm_reference.h"
#include "tests/support/rows.h"

namespace addnorm::runtime {
namespace {

using ir::DataType;
using tests::Data;
using tests::Get;
using tests::kAllData;
using tests::RandomRows;
using tests::Round;
using tests::Set;
using Bytes = std::vector<std::byte>;

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
    const double factor = tests::Factor(
        c.recipe, tests::SumOfSquares(c.recipe, x), c.n, c.epsilon);
    for (size_t i = 0; i < c.n; ++i) {
      const double scale =
          c.scale.empty() ? 0 : Get(c.recipe.scale_types[0], c.scale.data(), i);
      Set(result, c.y.data(), row * c.n + i,
          tests::Normalised(c.recipe, x[i], factor, scale));
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
  for (const RmsNormRecipe& r : tests::AllRecipes()) {
    INFO("recipe " << recipe++);
    bytes += CheckRecipe(r, targets);
  }
  CHECK(bytes > 8'000'000);
}

constexpr DataType kTypes[] = {DataType::kFloat, DataType::kDouble,
                               DataType::kFloat16, DataType::kBFloat16};

TEST_CASE("The common recipes have loops of their own", "[kernels]") {
  for (const DataType type : kTypes) {
    const std::vector<RmsNormRecipe> recipes = tests::UniformRecipes(type);
    for (size_t i = 0; i < recipes.size(); ++i) {
      INFO(ir::DataTypeName(type) << ", recipe " << i);
      const auto norm = AddRmsNorm::Create(recipes[i]);
      REQUIRE(norm.ok());
      CHECK(norm->has_own_loops() == (i < 7));
    }
  }
  for (const DataType half : {DataType::kFloat16, DataType::kBFloat16}) {
    for (const RmsNormRecipe& recipe :
         {RmsNormalizationRecipe(half, half, DataType::kFloat),
          SimplifiedLayerNormalizationRecipe(half, half)}) {
      CHECK(AddRmsNorm::Create(recipe)->has_own_loops());
    }
  }
}

// x = {3, 4}, so that its mean square is 12.5.
TEST_CASE("One element of scale serves all, and factors are given",
          "[kernels]") {
  RmsNormRecipe recipe = RmsNormalizationRecipe(
      DataType::kFloat, DataType::kFloat, DataType::kFloat);
  const auto norm = AddRmsNorm::Create(recipe);
  REQUIRE(norm.ok());
  const float a[] = {1, 2, 3, 4}, b[] = {2, 2, 0, 0}, scale[] = {10};
  float y[4] = {};
  double factors[2] = {};
  ThreadPool threads(1);
  const absl::Status status = norm->Run({.rows = 2,
                                         .length = 2,
                                         .a = a,
                                         .b = b,
                                         .scale = scale,
                                         .scale_count = 1,
                                         .y = y,
                                         .factors = factors},
                                        threads);
  REQUIRE(status.ok());
  const float root = std::sqrt(12.5f);
  CHECK(factors[0] == static_cast<double>(root));
  CHECK(factors[1] == static_cast<double>(root));
  CHECK(y[0] == 3 / root * 10);
  CHECK(y[3] == 4 / root * 10);
}

absl::Status Run(const RmsNormRecipe& recipe, AddRmsNormOperands operands) {
  const auto norm = AddRmsNorm::Create(recipe);
  if (!norm.ok()) return norm.status();
  ThreadPool threads(1);
  return norm->Run(operands, threads);
}

TEST_CASE("Operands and types that do not fit are refused", "[kernels]") {
  const DataType f32 = DataType::kFloat, f16 = DataType::kFloat16;
  const RmsNormRecipe good = RmsNormalizationRecipe(f32, f32, f32);
  const auto message = [](const absl::Status& status) {
    return std::string(status.message());
  };
  CHECK(Run(good, {.rows = 0, .length = 4, .scale_count = 4}).ok());
  CHECK(Run(good, {.rows = 1 << 30, .length = 0, .scale_count = 0}).ok());
  CHECK(message(Run(good, {.rows = -1, .length = 4, .scale_count = 4})) ==
        "a norm of -1 rows of 4 elements");
  CHECK(message(Run(good, {.rows = 1, .length = 4, .scale_count = 3})) ==
        "the scale of a norm has 3 elements, expected 4");
  RmsNormRecipe bad = good;
  bad.scale_types = {f16};
  CHECK(message(Run(bad, {})) ==
        "the scale of a norm is float16 where its row is float");
  bad = good;
  bad.row_steps[0] = {RowStep::Op::kCast, f16};
  CHECK(message(Run(bad, {})) ==
        "the factor of a norm is float where its row is float16");
  bad = good;
  bad.square_type = DataType::kInt32;
  CHECK(message(Run(bad, {})) ==
        "a norm computes in float, double, float16 or bfloat16, not int32");
}

}  // namespace
}  // namespace addnorm::runtime
