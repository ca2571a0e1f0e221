// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/matrix_product.h"
#include "tests/support/catch.h"
#include "tests/support/run_text.h"

namespace addnorm::tests {
namespace {

using runtime::BFloat16;
using runtime::ComputeType;
using runtime::Dims;
using runtime::GemmShape;
using runtime::Half;
using runtime::MatrixProduct;
using runtime::Narrow;
using runtime::ProductTerms;
using runtime::Tensor;
using runtime::ThreadPool;
using runtime::Widen;

// Numbers between -2 and 2 of which halves hold few exactly.
template <typename T>
std::vector<T> Numbers(int64_t count, uint32_t seed) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    const double value = (static_cast<double>(seed >> 8) / 0x1p23 - 1) * 2;
    values.push_back(Narrow<T>(static_cast<ComputeType<T>>(value)));
  }
  return values;
}

template <typename T>
std::vector<T> Product(const GemmShape& shape, const std::vector<T>& a,
                       const std::vector<T>& b, int threads,
                       const ProductTerms<T>& terms = {}) {
  ThreadPool pool(threads);
  std::vector<T> y(static_cast<size_t>(shape.m * shape.n));
  REQUIRE(
      MatrixProduct<T>(shape, a.data(), b.data(), y.data(), terms, pool).ok());
  return y;
}

template <typename T>
double Exact(const GemmShape& shape, const std::vector<T>& a,
             const std::vector<T>& b, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t p = 0; p < shape.k; ++p) {
    sum += static_cast<double>(
               Widen(a[i * shape.row_of_a() + p * shape.column_of_a()])) *
           static_cast<double>(
               Widen(b[p * shape.row_of_b() + j * shape.column_of_b()]));
  }
  return sum;
}

// More blocks than one, ragged ends, sums that oneDNN would split, vectors.
std::vector<GemmShape> Shapes() {
  std::vector<GemmShape> shapes;
  const int64_t sizes[][3] = {{1, 1, 1},      {1, 700, 131},   {300, 1, 97},
                              {2, 3, 5},      {16, 600, 2050}, {7, 5, 9000},
                              {270, 300, 40}, {129, 257, 513}};
  for (const auto& size : sizes) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      shapes.push_back({.m = size[0], .n = size[1], .k = size[2]});
      shapes.back().transpose_a = (transposes & 1) != 0;
      shapes.back().transpose_b = (transposes & 2) != 0;
    }
  }
  return shapes;
}

template <typename T>
void CheckThreadsAndValues(double tolerance) {
  for (const GemmShape& shape : Shapes()) {
    CAPTURE(shape.m, shape.n, shape.k, shape.transpose_a, shape.transpose_b);
    const auto a = Numbers<T>(shape.m * shape.k, 1);
    const auto b = Numbers<T>(shape.k * shape.n, 2);
    const std::vector<T> y = Product(shape, a, b, 1);
    for (int threads = 2; threads <= 4; ++threads) {
      const std::vector<T> other = Product(shape, a, b, threads);
      CHECK(std::memcmp(y.data(), other.data(), y.size() * sizeof(T)) == 0);
    }
    for (const int64_t i : {int64_t{0}, shape.m / 2, shape.m - 1}) {
      const int64_t j = (i * 7 + 3) % shape.n;
      const double want = Exact(shape, a, b, i, j);
      const double have = static_cast<double>(Widen(y[i * shape.n + j]));
      CHECK(std::abs(have - want) <=
            tolerance * (std::abs(want) + std::sqrt(shape.k)));
    }
  }
}

TEST_CASE("A product of floats has the same bits for 1 to 4 threads",
          "[runtime]") {
  CheckThreadsAndValues<float>(1e-5);
}

TEST_CASE("Products of other types have the same bits for 1 to 4 threads",
          "[runtime]") {
  CheckThreadsAndValues<Half>(0x1p-10);
  CheckThreadsAndValues<BFloat16>(0x1p-7);
  CheckThreadsAndValues<double>(1e-13);
}

TEST_CASE("A half product is rounded once, from the float sum", "[runtime]") {
  // 1024 + 600 * 2^-3: each step would be lost if the sum were a Half.
  const int64_t k = 601;
  std::vector<Half> a(k, Narrow<Half>(0.125F)), b(2 * k, Narrow<Half>(1.0F));
  a[0] = Narrow<Half>(1024.0F);
  for (const int64_t m : {1, 2}) {
    std::vector<Half> rows = a;
    if (m == 2) rows.insert(rows.end(), a.begin(), a.end());
    const auto y = Product({.m = m, .n = 2, .k = k}, rows, b, 1);
    for (const Half value : y) CHECK(Widen(value) == 1099.0F);
  }
}

TEST_CASE("Terms of a product are added before the rounding", "[runtime]") {
  const std::vector<float> a = {1, 2, 3, 4}, b = {5, 6, 7, 8}, c = {10, 20};
  ProductTerms<float> terms{.alpha = 2, .beta = 0.5F, .c = c.data()};
  terms.c_column = 1;
  const auto y = Product({.m = 2, .n = 2, .k = 2}, a, b, 1, terms);
  CHECK(y == std::vector<float>{43, 54, 91, 110});
}

TEST_CASE("A product keeps denormals on every thread", "[runtime]") {
  const std::vector<float> a(600 * 4, 0x1p-100F), b(4 * 600, 0x1p-42F);
  for (const auto& shape : {GemmShape{.m = 600, .n = 600, .k = 4},
                            GemmShape{.m = 1, .n = 600, .k = 4}}) {
    for (const float value : Product(shape, a, b, 3))
      REQUIRE(value == 0x1p-140F);
  }
}

TEST_CASE("A NaN in a product is canonical", "[runtime]") {
  const float nan = std::bit_cast<float>(0xffc12345U);
  for (const int64_t m : {1, 2}) {
    const std::vector<float> a(2 * m, nan), b(2, 1.0F);
    const auto y = Product({.m = m, .n = 1, .k = 2}, a, b, 1);
    const std::vector<float> wide_b(4, 1.0F);
    const auto wide = Product({.m = m, .n = 2, .k = 2}, a, wide_b, 1);
    for (const auto& values : {y, wide}) {
      for (const float value : values)
        CHECK(std::bit_cast<uint32_t>(value) == 0x7fc00000U);
    }
  }
}

TEST_CASE("Integer products wrap around", "[runtime]") {
  const std::vector<int32_t> a = {1 << 30, 3}, b = {4, -2};
  CHECK(Product({.m = 1, .n = 1, .k = 2}, a, b, 1) == std::vector<int32_t>{-6});
}

TEST_CASE("A product over no elements is zero", "[runtime]") {
  CHECK(Product<float>({.m = 2, .n = 2, .k = 0}, {}, {}, 1) ==
        std::vector<float>(4, 0));
}

// ---- operators

constexpr char kMatMul[] = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[] a, float[] b) => (float[] y) { y = MatMul(a, b) })";

absl::StatusOr<std::vector<Tensor>> MatMul(const Dims& a, const Dims& b) {
  const auto fill = [](const Dims& dims) {
    std::vector<float> values;
    for (int64_t i = 0; i < *runtime::ElementCount(dims); ++i)
      values.push_back(static_cast<float>(i % 5 - 2));
    return MakeTensor<float>(dims, values);
  };
  return RunText(kMatMul, {fill(a), fill(b)}, 2);
}

TEST_CASE("MatMul broadcasts batches", "[runtime]") {
  const auto y = MatMul({2, 1, 3, 4}, {5, 4, 2});
  REQUIRE(y.ok());
  CHECK(y->at(0).dims() == Dims{2, 5, 3, 2});
  const auto element = [](int64_t i) { return i % 5 - 2; };
  for (int64_t i = 0; i < 60; ++i) {
    const int64_t column = i % 2, row = i / 2 % 3, b = i / 6 % 5, a = i / 30;
    int64_t sum = 0;
    for (int64_t p = 0; p < 4; ++p)
      sum += element(a * 12 + row * 4 + p) * element(b * 8 + p * 2 + column);
    REQUIRE(y->at(0).data<float>()[i] == static_cast<float>(sum));
  }
}

TEST_CASE("MatMul takes vectors and empty operands", "[runtime]") {
  const std::pair<std::pair<Dims, Dims>, Dims> cases[] = {
      {{{4}, {4}}, {}},           {{{4}, {2, 4, 3}}, {2, 3}},
      {{{2, 3, 4}, {4}}, {2, 3}}, {{{0, 4}, {4, 3}}, {0, 3}},
      {{{2, 0}, {0, 3}}, {2, 3}}, {{{0, 2, 4}, {4, 3}}, {0, 2, 3}}};
  for (const auto& [operands, want] : cases) {
    CAPTURE(runtime::ToString(operands.first));
    const auto y = MatMul(operands.first, operands.second);
    REQUIRE(y.ok());
    CHECK(y->at(0).dims() == want);
  }
}

TEST_CASE("MatMul refuses operands that do not match", "[runtime]") {
  const std::pair<Dims, Dims> cases[] = {
      {{2, 3}, {4, 2}}, {{2, 2, 3}, {3, 3, 2}}, {{}, {2, 2}}, {{3}, {}}};
  for (const auto& [a, b] : cases) {
    CAPTURE(runtime::ToString(a), runtime::ToString(b));
    CHECK(absl::IsInvalidArgument(MatMul(a, b).status()));
  }
}

TEST_CASE("FusedMatMul transposes and scales", "[runtime]") {
  // a is [row, batch, k] by transBatchA, b [batch, n, k] by transB.
  const auto y =
      RunText(R"(<ir_version: 8,
      opset_import: ["" : 17, "com.microsoft" : 1]>
    g (float[] a, float[] b) => (float[] y) {
      y = com.microsoft.FusedMatMul<transBatchA = 1, transB = 1,
                                    alpha = 0.5>(a, b) })",
              {MakeTensor<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
               MakeTensor<float>({2, 1, 2}, {2, 4, 6, 8})});
  REQUIRE(y.ok());
  CHECK(y->at(0).dims() == Dims{2, 2, 1});
  // Batch 0: rows [1,2], [5,6] on [2,4]; batch 1: [3,4], [7,8] on [6,8].
  CHECK(ValuesOf<float>(y->at(0)) == std::vector<float>{5, 17, 25, 53});
}

TEST_CASE("Einsum refuses equations that fit no operands", "[runtime]") {
  for (const std::string equation :
       {"ij", "ij,jk->ik", "i->j", "ij->ii", "i..j->i", "i1->i", "...->..."}) {
    CAPTURE(equation);
    const auto y = RunText(
        R"(<ir_version: 8, opset_import: ["" : 17]>
           g (float[] a) => (float[] y) { y = Einsum<equation = ")" +
            equation + R"(">(a) })",
        {MakeTensor<float>({3}, {1, 2, 3})});
    CHECK(y.ok() == (equation == "...->..."));
  }
}

TEST_CASE("Einsum sums, broadcasts and takes diagonals", "[runtime]") {
  const auto einsum = [](const std::string& equation) {
    return RunText(R"(<ir_version: 8, opset_import: ["" : 17]>
        g (int32[2,2] a, int32[2,2] b) => (int32[] y) {
          y = Einsum<equation = ")" +
                       equation + R"(">(a, b) })",
                   {MakeTensor<int32_t>({2, 2}, {1, 2, 3, 4}),
                    MakeTensor<int32_t>({2, 2}, {5, 6, 7, 8})});
  };
  const std::pair<std::string, std::vector<int32_t>> cases[] = {
      {"ij,jk", {19, 22, 43, 50}},
      {"ij,kj->ik", {17, 23, 39, 53}},
      {"ii,jj->", {65}},
      {"ij , ij -> j", {26, 44}},
      {"...j,...j->...", {17, 53}},
      {"bA,bA->Ab", {5, 21, 12, 32}},
      {"...,...", {5, 12, 21, 32}}};
  for (const auto& [equation, want] : cases) {
    CAPTURE(equation);
    const auto y = einsum(equation);
    REQUIRE(y.ok());
    CHECK(ValuesOf<int32_t>(y->at(0)) == want);
  }
}

TEST_CASE("QLinearMatMul takes a scale for each row and column", "[runtime]") {
  const auto y = RunText(
      R"(<ir_version: 10, opset_import: ["" : 21]>
      g (int8[2,2] a, float[2] a_scale, int8[2] a_zero, uint8[2,2] b,
         float[2] b_scale, uint8[2] b_zero, float y_scale, int8 y_zero)
        => (int8[] y) {
        y = QLinearMatMul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale,
                          y_zero) })",
      {MakeTensor<int8_t>({2, 2}, {1, 2, 3, -4}),
       MakeTensor<float>({2}, {1, 2}), MakeTensor<int8_t>({2}, {0, 1}),
       MakeTensor<uint8_t>({2, 2}, {10, 20, 30, 40}),
       MakeTensor<float>({2}, {0.5F, 0.25F}),
       MakeTensor<uint8_t>({2}, {10, 30}), MakeTensor<float>({}, {2}),
       MakeTensor<int8_t>({}, {1})});
  REQUIRE(y.ok());
  // Centred: [1,2] and [2,-5] times [0,-10; 20,10]; the products [40,10] and
  // [-100,-70] times [.25,.125] and [.5,.25], to even, plus 1.
  CHECK(ValuesOf<int8_t>(y->at(0)) == std::vector<int8_t>{11, 2, -49, -17});
}

TEST_CASE("Gemm refuses what does not broadcast", "[runtime]") {
  const auto gemm = [](const Dims& a, const Dims& c) {
    const auto ones = [](const Dims& dims) {
      return MakeTensor<float>(
          dims, std::vector<float>(*runtime::ElementCount(dims), 1));
    };
    return RunText(R"(<ir_version: 8, opset_import: ["" : 17]>
        g (float[] a, float[] b, float[] c) => (float[] y) {
          y = Gemm<transB = 1>(a, b, c) })",
                   {ones(a), ones({4, 3}), ones(c)});
  };
  CHECK(gemm({2, 3}, {4}).ok());
  CHECK(gemm({2, 3}, {2, 1}).ok());
  CHECK(gemm({0, 3}, {1}).ok());
  CHECK(absl::IsInvalidArgument(gemm({2, 4}, {4}).status()));
  CHECK(absl::IsInvalidArgument(gemm({2, 3}, {3}).status()));
  CHECK(absl::IsInvalidArgument(gemm({2, 3}, {1, 1, 4}).status()));
  CHECK(absl::IsInvalidArgument(gemm({3}, {4}).status()));
}

}  // namespace
}  // namespace addnorm::tests
