// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows for tests of kernels: data that is apt to show a difference, and the
// comparison of bits.
#pragma once

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "runtime/element_cast.h"
#include "runtime/element_types.h"
#include "runtime/kernels/simd_target.h"

namespace addnorm::tests {

// What the elements of a row are like.
enum class Data { kNormal, kSpecial, kTiny, kHuge, kZero };
inline constexpr Data kAllData[] = {Data::kNormal, Data::kSpecial, Data::kTiny,
                                    Data::kHuge, Data::kZero};

// Signed zeros, denormals, infinities and NaNs with payloads, of float and of
// the half types, and what overflows when squared.
inline constexpr uint32_t kSpecialFloats[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000,
    0x7f800000, 0xff800000, 0x7fc00001, 0xffc12345, 0x7f800001, 0xffffffff,
    0x7f7fffff, 0xff7fffff, 0x33800000, 0xb3000001, 0x387fc000, 0x477fe000,
    0x477ff000, 0xc77fefff, 0x7f7f8000, 0x7f7f7fff, 0x5f800000, 0x3f800000};

template <typename T, typename Random>
T Element(Data data, Random& random) {
  std::normal_distribution<double> normal;
  const double v = normal(random);
  switch (data) {
    case Data::kNormal:
      return runtime::CastElement<T>(v);
    case Data::kSpecial:
      // Mostly ordinary, or every sum would be a NaN.
      return random() % 64 != 0
                 ? runtime::CastElement<T>(v)
                 : runtime::CastElement<T>(std::bit_cast<float>(
                       kSpecialFloats[random() % std::size(kSpecialFloats)]));
    case Data::kTiny:
      return runtime::CastElement<T>(v * (sizeof(T) == 2 ? 1e-7 : 1e-38));
    case Data::kHuge:
      return runtime::CastElement<T>(v * (sizeof(T) == 2 ? 1e4 : 1e19));
    case Data::kZero:
      return runtime::CastElement<T>(random() % 2 == 0 ? 0.0 : -0.0);
  }
  return {};
}

template <typename T, typename Random>
std::vector<T> Row(Data data, size_t n, Random& random) {
  std::vector<T> row(n);
  for (T& element : row) element = Element<T>(data, random);
  return row;
}

// Index of the first element whose bits differ, or n.
template <typename T>
size_t FirstDifference(const T* a, const T* b, size_t n) {
  if (std::memcmp(a, b, n * sizeof(T)) == 0) return n;
  size_t i = 0;
  while (std::memcmp(a + i, b + i, sizeof(T)) == 0) ++i;
  return i;
}

// f() with each SIMD target in use, INFO telling which.
template <typename F>
void OnEachTarget(F f) {
  for (const runtime::SimdTarget& target : runtime::SimdTargets()) {
    const runtime::UseSimdTarget use(target);
    f(target.name);
  }
}

}  // namespace addnorm::tests
