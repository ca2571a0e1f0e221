// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernels/row_ops.h"
#include "tests/support/catch.h"
#include "tests/support/rows.h"

namespace addnorm::runtime {
namespace {

using tests::FirstDifference;
using tests::OnEachTarget;

template <typename T>
std::vector<T> AllValues() {
  std::vector<T> values;
  for (uint32_t bits = 0; bits < 0x10000; ++bits)
    values.push_back({static_cast<uint16_t>(bits)});
  return values;
}

// What a half is, by the definition of its format: integers and powers of two.
// The first value beyond the largest stands for infinity.
double ValueOf(Half half) {
  const int exponent = half.bits >> 10 & 31, fraction = half.bits & 1023;
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, -24)
                               : std::ldexp(1024 + fraction, exponent - 25);
  return half.bits >> 15 != 0 ? -magnitude : magnitude;
}
double ValueOf(BFloat16 value) {
  const int exponent = value.bits >> 7 & 255, fraction = value.bits & 127;
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, -133)
                               : std::ldexp(128 + fraction, exponent - 134);
  return value.bits >> 15 != 0 ? -magnitude : magnitude;
}

template <typename T>
constexpr uint16_t kInfinity = std::is_same_v<T, Half> ? 0x7c00 : 0x7f80;

template <typename T>
uint32_t WidenedBits(T value) {
  const uint32_t sign = (value.bits & 0x8000u) << 16;
  const uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude > kInfinity<T>) {  // BFloat16's NaNs only change their width
    constexpr bool kIsHalf = std::is_same_v<T, Half>;
    return sign |
           (kIsHalf ? 0x7fc00000u | (magnitude & 1023) << 13 : magnitude << 16);
  }
  if (magnitude == kInfinity<T>) return sign | 0x7f800000u;
  return std::bit_cast<uint32_t>(static_cast<float>(ValueOf(value)));
}

template <typename T>
void CheckWidenings() {
  const std::vector<T> values = AllValues<T>();
  std::vector<uint32_t> expected;
  for (const T value : values) expected.push_back(WidenedBits(value));
  OnEachTarget([&](const std::string& target) {
    INFO(target);
    std::vector<float> widened(values.size());
    WidenRow(values.data(), widened.data(), values.size());
    CHECK(std::memcmp(widened.data(), expected.data(), 4 * widened.size()) ==
          0);
    std::transform(values.begin(), values.end(), widened.begin(), Widen<T>);
    CHECK(std::memcmp(widened.data(), expected.data(), 4 * widened.size()) ==
          0);
  });
}

TEST_CASE("Every half widens to the float that its format defines",
          "[kernels]") {
  CheckWidenings<Half>();
  CheckWidenings<BFloat16>();
}

// A float and the half that is nearest to it.
template <typename T>
struct Rounding {
  float from;
  T to;
};

// Each value, the middles between neighbours, and the floats next to either.
template <typename T>
std::vector<Rounding<T>> Roundings() {
  std::vector<Rounding<T>> roundings;
  const auto add = [&](float from, uint16_t magnitude) {
    roundings.push_back({from, {magnitude}});
    roundings.push_back({-from, {static_cast<uint16_t>(magnitude | 0x8000)}});
  };
  for (uint16_t bits = 0; bits < kInfinity<T>; ++bits) {
    const uint16_t next = bits + 1;
    const double low = ValueOf(T{bits}), high = ValueOf(T{next});
    const double middle = (low + high) / 2;
    add(static_cast<float>(low), bits);
    // The next of all is not a float for BFloat16.
    if (middle > static_cast<double>(std::numeric_limits<float>::max())) break;
    const float tie = static_cast<float>(middle);
    if (static_cast<double>(tie) != middle) continue;
    add(std::nextafter(tie, 0.0f), bits);
    add(tie, bits % 2 == 0 ? bits : next);
    add(std::nextafter(tie, INFINITY), next);
  }
  add(INFINITY, kInfinity<T>);
  return roundings;
}

template <typename T>
void CheckRoundings() {
  const std::vector<Rounding<T>> roundings = Roundings<T>();
  REQUIRE(roundings.size() > 200000);
  std::vector<float> from;
  std::vector<T> expected;
  for (const Rounding<T>& rounding : roundings) {
    from.push_back(rounding.from);
    expected.push_back(rounding.to);
  }
  OnEachTarget([&](const std::string& target) {
    INFO(target);
    std::vector<T> narrowed(from.size());
    NarrowRow(from.data(), narrowed.data(), from.size());
    CHECK(FirstDifference(narrowed.data(), expected.data(), from.size()) ==
          from.size());
    std::transform(from.begin(), from.end(), narrowed.begin(), Narrow<T>);
    CHECK(FirstDifference(narrowed.data(), expected.data(), from.size()) ==
          from.size());
  });
}

TEST_CASE("Floats round to the nearest half, ties to even", "[kernels]") {
  CheckRoundings<Half>();
  CheckRoundings<BFloat16>();
}

TEST_CASE("A NaN that is only converted keeps its sign and leading payload",
          "[kernels]") {
  const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0x7fffffff,
                           0xffffffff, 0x7fc12345, 0xff8fffff, 0x7fbfffff};
  std::vector<float> from;
  std::vector<Half> half;
  std::vector<BFloat16> bfloat16;
  for (const uint32_t bits : nans) {
    from.push_back(std::bit_cast<float>(bits));
    const uint32_t sign = bits >> 16 & 0x8000;
    half.push_back(
        {static_cast<uint16_t>(sign | 0x7e00 | (bits >> 13 & 0x3ff))});
    bfloat16.push_back({static_cast<uint16_t>(bits >> 16 | 0x40)});
  }
  OnEachTarget([&](const std::string& target) {
    INFO(target);
    std::vector<Half> to_half(8);
    std::vector<BFloat16> to_bfloat16(8);
    NarrowRow(from.data(), to_half.data(), 8);
    NarrowRow(from.data(), to_bfloat16.data(), 8);
    CHECK(to_half == half);
    CHECK(to_bfloat16 == bfloat16);
  });
}

// round(a op b) with the exact result in double: sums and products of halves
// are exact there, and its rounding to T is Roundings' business.
template <typename T>
void CheckSumsAndProducts() {
  const size_t n = 1 << 18;
  std::mt19937 random(1);
  std::vector<T> a(n), b(n), sums(n), products(n), have(n);
  for (size_t i = 0; i < n; ++i) {
    // One in four has an exponent near a's: there sums round, and tie.
    const auto bits = static_cast<uint16_t>(random());
    a[i].bits = bits;
    b[i].bits = static_cast<uint16_t>(i % 4 == 0 ? bits ^ (random() & 0x8fff)
                                                 : random());
    sums[i] = CastElement<T>(Canonical(static_cast<double>(Widen(a[i])) +
                                       static_cast<double>(Widen(b[i]))));
    products[i] = CastElement<T>(Canonical(static_cast<double>(Widen(a[i])) *
                                           static_cast<double>(Widen(b[i]))));
  }
  OnEachTarget([&](const std::string& target) {
    INFO(target);
    BinaryRows(BinaryOp::kAdd, a.data(), b.data(), have.data(), n);
    CHECK(FirstDifference(have.data(), sums.data(), n) == n);
    BinaryRows(BinaryOp::kMultiply, a.data(), b.data(), have.data(), n);
    CHECK(FirstDifference(have.data(), products.data(), n) == n);
  });
}

TEST_CASE("Halves add and multiply as if rounded once from the exact result",
          "[kernels]") {
  CheckSumsAndProducts<Half>();
  CheckSumsAndProducts<BFloat16>();
}

TEST_CASE("A double is cast to a half with one rounding", "[kernels]") {
  // Just above a tie: rounded to float first, it would be the tie.
  const double above = 1 + 0x1p-11 + 0x1p-40;
  CHECK(CastElement<Half>(above).bits == 0x3c01);
  CHECK(CastElement<Half>(1 + 0x1p-11).bits == 0x3c00);
  CHECK(CastElement<Half>(-above).bits == 0xbc01);
  CHECK(CastElement<BFloat16>(1 + 0x1p-8 + 0x1p-40).bits == 0x3f81);
  CHECK(CastElement<BFloat16>(1e300).bits == 0x7f80);
  CHECK(CastElement<Half>(65519.9999999).bits == 0x7bff);
  CHECK(CastElement<Half>(65520.0).bits == 0x7c00);
}

}  // namespace
}  // namespace addnorm::runtime
