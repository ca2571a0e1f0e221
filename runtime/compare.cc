// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "fmt/format.h"
#include "runtime/element_types.h"

namespace addnorm::runtime {
namespace {

constexpr uint64_t kFar = std::numeric_limits<uint64_t>::max();

template <typename T>
using BitsOf = std::conditional_t<
    sizeof(T) == 8, uint64_t,
    std::conditional_t<sizeof(T) == 4, uint32_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

template <typename T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsHalfType<T>;

template <typename T>
bool IsNan(T value) {
  if constexpr (kIsFloat<T>) {
    return std::isnan(Widen(value));
  } else {
    return false;
  }
}

// Neighbouring numbers have neighbouring ranks; -0 and +0 are one apart.
template <typename Bits>
uint64_t RankOf(Bits bits) {
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  return (bits & kSign) != 0 ? uint64_t{kSign} - 1 - (bits & (kSign - 1))
                             : uint64_t{kSign} + bits;
}

template <typename T>
uint64_t UlpsBetween(T a, T b) {
  if constexpr (kIsFloat<T>) {
    if (IsNan(a) || IsNan(b)) return kFar;
    const uint64_t x = RankOf(std::bit_cast<BitsOf<T>>(a));
    const uint64_t y = RankOf(std::bit_cast<BitsOf<T>>(b));
    return x > y ? x - y : y - x;
  } else {
    return kFar;
  }
}

template <typename T>
std::string Show(T value) {
  const auto bits = std::bit_cast<BitsOf<T>>(value);
  const std::string hex = fmt::format("0x{:0{}x}", bits, 2 * sizeof(T));
  if constexpr (kIsFloat<T>) return fmt::format("{} ({})", hex, Widen(value));
  if constexpr (std::is_integral_v<T>) return fmt::format("{}", value);
  return hex;
}

size_t ClassOf(uint64_t ulps) {
  const size_t index = ulps <= 1 ? 0 : std::bit_width(ulps - 1);
  return std::min(index, kUlpClasses - 1);
}

template <typename T>
void CompareElements(const Tensor& expected, const Tensor& found,
                     Comparison& comparison) {
  const T* a = expected.data<T>();
  const T* b = found.data<T>();
  for (int64_t i = 0; i < expected.count(); ++i) {
    if (std::bit_cast<BitsOf<T>>(a[i]) == std::bit_cast<BitsOf<T>>(b[i]))
      continue;
    if (comparison.first < 0) {
      comparison.first = i;
      comparison.expected = Show(a[i]);
      comparison.found = Show(b[i]);
    }
    if (IsNan(a[i]) && IsNan(b[i])) {
      ++comparison.nan_payloads;
      continue;
    }
    const uint64_t ulps = UlpsBetween(a[i], b[i]);
    ++comparison.different;
    ++comparison.ulps[ClassOf(ulps)];
    comparison.max_ulps = std::max(comparison.max_ulps, ulps);
  }
}

template <typename... Ts>
void CompareAs(const Tensor& expected, const Tensor& found,
               Comparison& comparison) {
  const bool done =
      ((expected.type() == kTypeOf<Ts> &&
        (CompareElements<Ts>(expected, found, comparison), true)) ||
       ...);
  // Types of a byte or less: bits are all that counts.
  if (!done) CompareElements<uint8_t>(expected, found, comparison);
}

}  // namespace

Comparison Compare(const Tensor& expected, const Tensor& found) {
  Comparison comparison;
  if (expected.type() != found.type() || expected.dims() != found.dims()) {
    comparison.mismatch =
        fmt::format("is {}, expected {}", Describe(found), Describe(expected));
    return comparison;
  }
  comparison.elements = expected.count();
  // Most comparisons end here.
  if (expected.byte_size() == 0 ||
      std::memcmp(expected.data<char>(), found.data<char>(),
                  expected.byte_size()) == 0)
    return comparison;
  CompareAs<float, double, Half, BFloat16, int16_t, uint16_t, int32_t, uint32_t,
            int64_t, uint64_t>(expected, found, comparison);
  return comparison;
}

void Comparison::Add(const Comparison& other) {
  if (mismatch.empty()) mismatch = other.mismatch;
  if (first < 0) {
    first = other.first;
    expected = other.expected;
    found = other.found;
  }
  elements += other.elements;
  different += other.different;
  nan_payloads += other.nan_payloads;
  max_ulps = std::max(max_ulps, other.max_ulps);
  for (size_t i = 0; i < kUlpClasses; ++i) ulps[i] += other.ulps[i];
}

std::string UlpClassName(size_t index) {
  if (index == 0) return "1";
  if (index == 1) return "2";
  if (index == kUlpClasses - 1) return "more";
  return fmt::format("{}-{}", (1 << (index - 1)) + 1, 1 << index);
}

}  // namespace addnorm::runtime
