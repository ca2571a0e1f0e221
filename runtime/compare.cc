// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "fmt/format.h"
#include "runtime/element_types.h"
#include "runtime/float8.h"

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

// Of different elements.
double AbsoluteOf(double a, double b) {
  const double difference = std::abs(a - b);
  return std::isnan(difference) ? HUGE_VAL : difference;
}

template <typename T>
double Distance(ir::DataType type, T a, T b) {
  if constexpr (kIsFloat<T>) return AbsoluteOf(Widen(a), Widen(b));
  if constexpr (std::is_same_v<T, uint8_t>) {
    if (IsSmallFloat(type))
      return AbsoluteOf(FloatFromSmall(type, a), FloatFromSmall(type, b));
  }
  if constexpr (std::is_integral_v<T>) {
    // Exact but for the last rounding, which a difference of doubles is not.
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<double>(a > b ? x - y : y - x);
  }
  return HUGE_VAL;
}

template <typename T>
std::string ShowNumber(ir::DataType type, T value) {
  if constexpr (kIsFloat<T>) return fmt::format("{}", Widen(value));
  if constexpr (std::is_same_v<T, uint8_t>) {
    if (IsSmallFloat(type))
      return fmt::format("{}", FloatFromSmall(type, value));
  }
  return Show(value);
}

template <typename T>
void NoteDistance(const Tensor& tensor, int64_t i, T a, T b,
                  AbsoluteDifference& largest) {
  const double distance = Distance(tensor.type(), a, b);
  // Of a -0 and a +0 it is 0; the first of them is taken.
  if (!largest.expected.empty() && distance <= largest.value) return;
  largest = {distance, CoordinatesOf(i, tensor.dims()),
             ShowNumber(tensor.type(), a), ShowNumber(tensor.type(), b)};
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
      comparison.first_at = CoordinatesOf(i, expected.dims());
      comparison.expected = Show(a[i]);
      comparison.found = Show(b[i]);
    }
    if (IsNan(a[i]) && IsNan(b[i])) {
      ++comparison.nan_payloads;
      continue;
    }
    const uint64_t ulps = UlpsBetween(a[i], b[i]);
    ++comparison.different;
    NoteDistance(expected, i, a[i], b[i], comparison.largest);
    ++comparison.ulps[ClassOf(ulps)];
    if (comparison.different > 1 && ulps <= comparison.max_ulps) continue;
    comparison.max_ulps = ulps;
    comparison.max_ulps_place = {CoordinatesOf(i, expected.dims()),
                                 ShowNumber(expected.type(), a[i]),
                                 ShowNumber(expected.type(), b[i])};
  }
}

template <typename... Ts, typename F>
bool CallForOneOf(ir::DataType type, F&& f) {
  return ((type == kTypeOf<Ts> && (f.template operator()<Ts>(), true)) || ...);
}

// Calls f with the type as which elements are compared: of a byte or less, as
// integers.
template <typename F>
void CallForType(ir::DataType type, F&& f) {
  if (CallForOneOf<float, double, Half, BFloat16, int8_t, int16_t, uint16_t,
                   int32_t, uint32_t, int64_t, uint64_t>(type, f))
    return;
  const bool is_signed =
      type == ir::DataType::kInt4 || type == ir::DataType::kInt2;
  is_signed ? f.template operator()<int8_t>()
            : f.template operator()<uint8_t>();
}

// Complex numbers as pairs, in one dimension more; others as they are.
Tensor Parts(const Tensor& tensor) {
  if (tensor.type() != ir::DataType::kComplex64 &&
      tensor.type() != ir::DataType::kComplex128)
    return tensor;
  Dims dims = tensor.dims();
  dims.push_back(2);
  return tensor.WithType(tensor.type() == ir::DataType::kComplex64
                             ? ir::DataType::kFloat
                             : ir::DataType::kDouble,
                         std::move(dims));
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
  const Tensor a = Parts(expected), b = Parts(found);
  CallForType(a.type(),
              [&]<typename T>() { CompareElements<T>(a, b, comparison); });
  return comparison;
}

void Comparison::Add(const Comparison& other) {
  if (mismatch.empty()) mismatch = other.mismatch;
  if (first < 0) {
    first = other.first;
    first_at = other.first_at;
    expected = other.expected;
    found = other.found;
  }
  elements += other.elements;
  different += other.different;
  nan_payloads += other.nan_payloads;
  if (max_ulps_place.expected.empty() || other.max_ulps > max_ulps) {
    max_ulps = other.max_ulps;
    max_ulps_place = other.max_ulps_place;
  }
  for (size_t i = 0; i < kUlpClasses; ++i) ulps[i] += other.ulps[i];
  if (largest.expected.empty() || other.largest.value > largest.value)
    largest = other.largest;
}

std::string NumberAt(const Tensor& tensor, int64_t index) {
  std::string text;
  const Tensor parts = Parts(tensor);
  CallForType(parts.type(), [&]<typename T>() {
    text = ShowNumber(parts.type(), parts.data<T>()[index]);
  });
  return text;
}

std::vector<int64_t> CoordinatesOf(int64_t index, const Dims& dims) {
  std::vector<int64_t> at(dims.size());
  for (size_t i = dims.size(); i-- > 0; index /= dims[i])
    at[i] = index % dims[i];
  return at;
}

std::string UlpClassName(size_t index) {
  if (index == 0) return "1";
  if (index == 1) return "2";
  if (index == kUlpClasses - 1) return "more";
  return fmt::format("{}-{}", (1 << (index - 1)) + 1, 1 << index);
}

}  // namespace addnorm::runtime
