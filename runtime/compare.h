// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares tensors by bits and says how far apart they are.
//
// No tolerance anywhere: a caller that accepts some distance asks max_ulps or
// largest. Two NaNs of different bits are counted apart from other differences.
//
//   const Comparison comparison = Compare(expected, found);
//   if (!comparison.is_equal()) Report(comparison.first, …);
#ifndef ADDNORM_RUNTIME_COMPARE_H_
#define ADDNORM_RUNTIME_COMPARE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tensor.h"

namespace addnorm::runtime {

// Distances of 1, 2, 3-4, 5-8, … units in the last place; the last class takes
// the rest, infinities and NaNs against numbers included.
inline constexpr size_t kUlpClasses = 16;

// The largest difference of two numbers, and where it is.
struct AbsoluteDifference {
  // Infinite for a NaN or an infinity against a number, and for elements that
  // are no real numbers.
  double value = 0;
  std::vector<int64_t> at;      // coordinates
  std::string expected, found;  // "0.25"
};

// Where the most units in the last place lie between two numbers: of numbers
// near 0 they are many, so that it is seldom the place of the largest
// difference.
struct UlpPlace {
  std::vector<int64_t> at;
  std::string expected, found;
};

struct Comparison {
  // Other type or shape: nothing else is compared. "" if they agree.
  std::string mismatch;
  int64_t elements = 0;
  int64_t different = 0;  // but for the payload of NaNs
  int64_t nan_payloads = 0;
  int64_t first = -1;             // index of the first element that differs
  std::string expected, found;    // that element: "0x3f800001 (1.0000001)"
  std::vector<int64_t> first_at;  // its coordinates
  uint64_t max_ulps = 0;
  UlpPlace max_ulps_place;
  std::array<int64_t, kUlpClasses> ulps = {};
  AbsoluteDifference largest;

  bool is_equal() const { return is_equal_but_for_nans() && nan_payloads == 0; }
  bool is_equal_but_for_nans() const {
    return mismatch.empty() && different == 0;
  }
  // Sums up another comparison; the first difference stays the first.
  void Add(const Comparison& other);
};

Comparison Compare(const Tensor& expected, const Tensor& found);

// The element with that index as a number: "0.25".
std::string NumberAt(const Tensor& tensor, int64_t index);

// Coordinates of the element with that index.
std::vector<int64_t> CoordinatesOf(int64_t index, const Dims& dims);

// "2", "3-4", "more": the distances of a class.
std::string UlpClassName(size_t index);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_COMPARE_H_
