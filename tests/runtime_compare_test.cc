// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/compare.h"
#include "runtime/element_types.h"
#include "tests/support/catch.h"
#include "tests/support/run_text.h"

namespace addnorm::runtime {
namespace {

using tests::MakeTensor;

template <typename T>
Comparison CompareElements(const std::vector<T>& a, const std::vector<T>& b) {
  const auto count = static_cast<int64_t>(a.size());
  return Compare(MakeTensor<T>({count}, a), MakeTensor<T>({count}, b));
}

float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

constexpr uint64_t kFar = std::numeric_limits<uint64_t>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Distance {
  float a, b;
  uint64_t ulps;
};

const Distance kDistances[] = {
    {1.0F, std::nextafter(1.0F, 2.0F), 1},
    {1.0F, std::nextafter(1.0F, 0.0F), 1},
    {-1.0F, std::nextafter(-1.0F, -2.0F), 1},
    {1.0F, 2.0F, 1 << 23},
    {0.0F, -0.0F, 1},
    {-0.0F, -FromBits(1), 1},
    {0.0F, FromBits(1), 1},
    // From the smallest denormal below zero to the one above: both zeros are
    // on the way.
    {-FromBits(1), FromBits(1), 3},
    {std::numeric_limits<float>::max(), kInfinity, 1},
    {std::nanf(""), 1.0F, kFar},
    {kInfinity, -kInfinity, 2 * uint64_t{0x7f800000} + 1},
};

TEST_CASE("distances in units in the last place", "[compare]") {
  for (const Distance& row : kDistances) {
    INFO(row.a << " and " << row.b);
    for (const auto& [a, b] : {std::pair(row.a, row.b), {row.b, row.a}}) {
      const Comparison found = CompareElements<float>({a}, {b});
      CHECK(found.max_ulps == row.ulps);
      CHECK(found.different == 1);
      CHECK_FALSE(found.is_equal_but_for_nans());
    }
  }
}

TEST_CASE("half and double types have their own units", "[compare]") {
  const Half one{0x3c00}, next{0x3c01}, minus_zero{0x8000}, zero{0};
  CHECK(CompareElements<Half>({one}, {next}).max_ulps == 1);
  CHECK(CompareElements<Half>({zero}, {minus_zero}).max_ulps == 1);
  CHECK(CompareElements<BFloat16>({{0x3f80}}, {{0x3f83}}).max_ulps == 3);
  CHECK(CompareElements<double>({1.0}, {std::nextafter(1.0, 2)}).max_ulps == 1);
}

TEST_CASE("distances are counted by class", "[compare]") {
  const std::vector<float> zeros(6, 1.0F);
  std::vector<float> others;
  for (const uint32_t ulps : {0U, 1U, 2U, 3U, 4U, 5U})
    others.push_back(FromBits(0x3f800000 + ulps));
  const Comparison found = CompareElements<float>(zeros, others);
  CHECK(found.ulps[0] == 1);
  CHECK(found.ulps[1] == 1);
  CHECK(found.ulps[2] == 2);
  CHECK(found.ulps[3] == 1);
  CHECK(found.different == 5);
  CHECK(found.max_ulps == 5);
  CHECK(UlpClassName(0) == "1");
  CHECK(UlpClassName(1) == "2");
  CHECK(UlpClassName(2) == "3-4");
  CHECK(UlpClassName(3) == "5-8");
  CHECK(UlpClassName(kUlpClasses - 1) == "more");
}

TEST_CASE("another payload of a NaN is a class of its own", "[compare]") {
  const Comparison found = CompareElements<float>({1.0F, FromBits(0x7fc00001)},
                                                  {1.0F, FromBits(0xffc00002)});
  CHECK(found.nan_payloads == 1);
  CHECK(found.different == 0);
  CHECK(found.first == 1);
  CHECK(found.expected == "0x7fc00001 (nan)");
  CHECK(found.is_equal_but_for_nans());
  CHECK_FALSE(found.is_equal());
  CHECK(CompareElements<float>({std::nanf("")}, {std::nanf("")}).is_equal());
}

TEST_CASE("the first difference is shown", "[compare]") {
  const Comparison found =
      CompareElements<float>({1, 2, 3, 4}, {1, 2.5F, 3, 5});
  CHECK(found.elements == 4);
  CHECK(found.different == 2);
  CHECK(found.first == 1);
  CHECK(found.expected == "0x40000000 (2)");
  CHECK(found.found == "0x40200000 (2.5)");
  const Comparison integers = CompareElements<int64_t>({7}, {-7});
  CHECK(integers.expected == "7");
  CHECK(integers.found == "-7");
  CHECK(CompareElements<uint8_t>({7}, {8}).different == 1);
}

TEST_CASE("the largest absolute difference has its place and both numbers",
          "[compare]") {
  const Comparison found =
      Compare(MakeTensor<float>({2, 1, 3}, {1e9F, 2, 3, 4, 0.25F, 6}),
              MakeTensor<float>({2, 1, 3}, {1e9F, 2, 3.5F, 4, -0.5F, 6}));
  CHECK(found.first_at == std::vector<int64_t>{0, 0, 2});
  CHECK(found.largest.value == 0.75);
  CHECK(found.largest.at == std::vector<int64_t>{1, 0, 1});
  CHECK(found.largest.expected == "0.25");
  CHECK(found.largest.found == "-0.5");
}

TEST_CASE("absolute differences of every kind of number", "[compare]") {
  const auto largest = [](const auto& a, const auto& b) {
    return CompareElements(std::vector{a}, std::vector{b}).largest.value;
  };
  CHECK(largest(std::nanf(""), 1.0F) == HUGE_VAL);
  CHECK(largest(kInfinity, 1.0F) == HUGE_VAL);
  CHECK(largest(0.0F, -0.0F) == 0);
  CHECK(largest(Half{0x3c00}, Half{0x4000}) == 1);
  CHECK(largest(int8_t{-1}, int8_t{1}) == 2);
  // Beyond what a difference of doubles tells.
  const int64_t large = int64_t{1} << 62;
  CHECK(largest(large, large + 1) == 1);
  CHECK(largest(std::numeric_limits<int64_t>::min(),
                std::numeric_limits<int64_t>::max()) == 0x1p64);
  CHECK(largest(Float8E4M3FN{0x38}, Float8E4M3FN{0x40}) == 1);
  CHECK(largest(Int4{-1}, Int4{1}) == 2);
}

TEST_CASE("complex numbers are compared in both parts", "[compare]") {
  const auto complex = [](std::vector<float> parts) {
    const Tensor pairs = MakeTensor<float>({2, 2}, parts);
    return pairs.WithType(ir::DataType::kComplex64, {2});
  };
  const Comparison found =
      Compare(complex({1, 2, 3, 4}), complex({1, 2, 3, 5}));
  CHECK(found.different == 1);
  CHECK(found.first_at == std::vector<int64_t>{1, 1});
  CHECK(found.expected == "0x40800000 (4)");
}

TEST_CASE("another type or shape is no comparison of elements", "[compare]") {
  const Tensor floats = MakeTensor<float>({2}, {1, 2});
  const Comparison type = Compare(floats, MakeTensor<double>({2}, {1, 2}));
  CHECK(type.mismatch == "is double[2], expected float[2]");
  CHECK(type.elements == 0);
  CHECK_FALSE(type.is_equal_but_for_nans());
  CHECK(Compare(floats, MakeTensor<float>({1, 2}, {1, 2})).mismatch ==
        "is float[1,2], expected float[2]");
  CHECK(Compare(MakeTensor<float>({0}, {}), MakeTensor<float>({0}, {}))
            .is_equal());
}

TEST_CASE("comparisons add up and keep the first difference", "[compare]") {
  Comparison sum = CompareElements<float>({1}, {1});
  sum.Add(CompareElements<float>({1, 2}, {1, FromBits(0x40000003)}));
  sum.Add(CompareElements<float>({5}, {6}));
  CHECK(sum.largest.value == 1);
  CHECK(sum.largest.found == "6");
  CHECK(sum.elements == 4);
  CHECK(sum.different == 2);
  CHECK(sum.first == 1);
  CHECK(sum.expected == "0x40000000 (2)");
  CHECK(sum.ulps[2] == 1);
  CHECK(sum.max_ulps > 3);
  sum.Add(Compare(MakeTensor<float>({1}, {1}), MakeTensor<float>({1, 1}, {1})));
  CHECK_FALSE(sum.mismatch.empty());
}

}  // namespace
}  // namespace addnorm::runtime
