// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/exponential.h"
#include "runtime/kernels/row_ops.h"
#include "tests/support/catch.h"
#include "tests/support/rows.h"

namespace addnorm::runtime {
namespace {

using tests::Data;
using tests::FirstDifference;
using tests::kAllData;
using tests::OnEachTarget;
using tests::Row;

constexpr size_t kLengths[] = {0,  1,  2,  7,  8,  15,  16,  17,   31,   32,
                               33, 47, 63, 64, 65, 100, 255, 1000, 4096, 8191};

template <typename T>
T Reference(BinaryOp op, T a, T b) {
  const auto x = Widen(a), y = Widen(b);
  switch (op) {
    case BinaryOp::kAdd:
      return Rounded<T>(x + y);
    case BinaryOp::kSubtract:
      return Rounded<T>(x - y);
    case BinaryOp::kMultiply:
      return Rounded<T>(x * y);
    default:
      return Rounded<T>(x / y);
  }
}

template <typename T>
T Reference(UnaryOp op, T a) {
  const auto x = Widen(a);
  switch (op) {
    case UnaryOp::kSquareRoot:
      return Rounded<T>(std::sqrt(x));
    case UnaryOp::kReciprocal:
      return Rounded<T>(1 / x);
    case UnaryOp::kNegate:
      return Rounded<T>(-x);
    case UnaryOp::kExponential:
      return Rounded<T>(Exponential(x));
    default:
      return Rounded<T>(x * x);
  }
}

// The contract of row_ops.h, word for word.
template <typename T>
ComputeType<T> ReferenceSum(const std::vector<T>& row, bool of_squares) {
  using C = ComputeType<T>;
  C lanes[32] = {};
  for (size_t i = 0; i < row.size(); ++i) {
    const C v = Widen(row[i]);
    lanes[i % 32] += of_squares ? v * v : v;
  }
  for (int h = 16; h > 0; h /= 2) {
    for (int k = 0; k < h; ++k) lanes[k] += lanes[k + h];
  }
  return Canonical(lanes[0]);
}

template <typename T>
ComputeType<T> ReferenceMax(const std::vector<T>& row) {
  using C = ComputeType<T>;
  const auto fold = [](C& a, C b) {
    if (b > a || b != b) a = b;
  };
  std::vector<C> lanes(32, -std::numeric_limits<C>::infinity());
  for (size_t i = 0; i < row.size(); ++i) fold(lanes[i % 32], Widen(row[i]));
  for (size_t h = 16; h > 0; h /= 2) {
    for (size_t k = 0; k < h; ++k) fold(lanes[k], lanes[k + h]);
  }
  return Canonical(lanes[0]);
}

template <typename T>
void CheckBinary(BinaryOp op, const std::vector<T>& a,
                 const std::vector<T>& b) {
  const size_t n = a.size();
  std::vector<T> rows, row_scalar, scalar_row, have(n + 1);
  for (size_t i = 0; i < n; ++i) {
    rows.push_back(Reference(op, a[i], b[i]));
    row_scalar.push_back(Reference(op, a[i], b[0]));
    scalar_row.push_back(Reference(op, a[0], b[i]));
  }
  // One element off, so that no vector is aligned.
  T* out = have.data() + 1;
  BinaryRows(op, a.data(), b.data(), out, n);
  CHECK(FirstDifference(out, rows.data(), n) == n);
  BinaryRowScalar(op, a.data(), b[0], out, n);
  CHECK(FirstDifference(out, row_scalar.data(), n) == n);
  BinaryScalarRow(op, a[0], b.data(), out, n);
  CHECK(FirstDifference(out, scalar_row.data(), n) == n);
  std::copy(a.begin(), a.end(), out);
  BinaryRows(op, out, b.data(), out, n);
  CHECK(FirstDifference(out, rows.data(), n) == n);
}

template <typename T>
void CheckUnary(UnaryOp op, const std::vector<T>& a) {
  const size_t n = a.size();
  std::vector<T> expected, have(n + 1);
  for (const T v : a) expected.push_back(Reference(op, v));
  UnaryRow(op, a.data(), have.data() + 1, n);
  CHECK(FirstDifference(have.data() + 1, expected.data(), n) == n);
}

template <typename T>
void CheckSums(const std::vector<T>& a) {
  const ComputeType<T> expected[] = {ReferenceSum(a, false),
                                     ReferenceSum(a, true), ReferenceMax(a)};
  const ComputeType<T> have[] = {SumRow(a.data(), a.size()),
                                 SumOfSquaresRow(a.data(), a.size()),
                                 MaxRow(a.data(), a.size())};
  CHECK(FirstDifference(have, expected, 3) == 3);
}

// Floats of every kind, as results of ops.
template <typename T>
void CheckRounding(const std::vector<ComputeType<T>>& wide) {
  const size_t n = wide.size();
  std::vector<T> expected, have(n + 1);
  for (const auto v : wide) expected.push_back(Rounded<T>(v));
  RoundRow(wide.data(), have.data() + 1, n);
  CHECK(FirstDifference(have.data() + 1, expected.data(), n) == n);
}

template <typename T>
void CheckRows() {
  for (const size_t n : kLengths) {
    for (const Data data : kAllData) {
      INFO(n << " elements, data " << static_cast<int>(data));
      std::mt19937 random(static_cast<unsigned>(n));
      const std::vector<T> a = Row<T>(data, n, random);
      const std::vector<T> b = Row<T>(data, n, random);
      CheckSums(a);
      CheckRounding<T>(Row<ComputeType<T>>(data, n, random));
      if (n == 0) continue;
      for (int op = 0; op < 4; ++op)
        CheckBinary(static_cast<BinaryOp>(op), a, b);
      for (int op = 0; op < 5; ++op) CheckUnary(static_cast<UnaryOp>(op), a);
    }
  }
}

TEST_CASE("Row primitives give the bits of scalar arithmetic on every target",
          "[kernels]") {
  OnEachTarget([](const std::string& target) {
    INFO(target);
    CheckRows<float>();
    CheckRows<double>();
    CheckRows<Half>();
    CheckRows<BFloat16>();
  });
}

TEST_CASE("The machine's SIMD targets include the scalar one", "[kernels]") {
  const std::vector<SimdTarget> targets = SimdTargets();
  REQUIRE_FALSE(targets.empty());
  const std::string last = targets.back().name;
  CHECK((last == "SCALAR" || last == "EMU128"));
}

TEST_CASE("Streamed rows arrive whole, whatever the alignment", "[kernels]") {
  std::string from(300, '\0'), to(400, '.');
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i);
  OnEachTarget([&](const std::string& target) {
    INFO(target);
    for (size_t offset = 0; offset < 65; ++offset) {
      for (const size_t bytes : {0, 1, 15, 63, 64, 65, 129, 300}) {
        std::fill(to.begin(), to.end(), '.');
        StreamRow(from.data(), to.data() + offset, bytes);
        FlushStreams();
        const std::string expected = std::string(offset, '.') +
                                     from.substr(0, bytes) +
                                     std::string(400 - offset - bytes, '.');
        REQUIRE(to == expected);
      }
    }
  });
}

}  // namespace
}  // namespace addnorm::runtime
