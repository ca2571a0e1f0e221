// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops as the executor runs them give the bits of the row primitives, for every
// SIMD target and number of threads.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "runtime/kernels/row_ops.h"
#include "tests/support/catch.h"
#include "tests/support/rows.h"
#include "tests/support/run_text.h"

namespace addnorm::runtime {
namespace {

using tests::Data;
using tests::FirstDifference;
using tests::MakeTensor;
using tests::OnEachTarget;
using tests::Row;
using tests::RunText;

// Enough for four threads, of an odd length.
constexpr int64_t kRows = 33, kLength = 4099;
constexpr auto kN = static_cast<size_t>(kLength);

// What a node makes of a [kRows, kLength] and b of another shape, row by row.
template <typename T>
struct Case {
  std::string node;
  Dims b_dims;
  std::function<void(const T* a, const T* b, T* y)> row;
  int64_t y_length = kLength;
};

template <typename T>
std::vector<Case<T>> BinaryCases() {
  std::vector<Case<T>> cases;
  int next = 0;
  for (const std::string name : {"Add", "Sub", "Mul", "Div"}) {
    const auto op = static_cast<BinaryOp>(next++);
    const std::string node = fmt::format("y = {}(a, b)", name);
    const auto rows = [op](const T* a, const T* b, T* y) {
      BinaryRows(op, a, b, y, kN);
    };
    cases.push_back({node, {kRows, kLength}, rows});
    cases.push_back({node, {kLength}, rows});
    cases.push_back({node, {kRows, 1}, [op](const T* a, const T* b, T* y) {
                       BinaryRowScalar(op, a, *b, y, kN);
                     }});
    cases.push_back({fmt::format("y = {}(b, a)", name),
                     {kRows, 1},
                     [op](const T* a, const T* b, T* y) {
                       BinaryScalarRow(op, *b, a, y, kN);
                     }});
  }
  return cases;
}

template <typename T>
std::vector<Case<T>> UnaryCases() {
  const auto of = [](UnaryOp op) {
    return [op](const T* a, const T*, T* y) { UnaryRow(op, a, y, kN); };
  };
  return {{"y = Sqrt(a)", {1}, of(UnaryOp::kSquareRoot)},
          {"y = Reciprocal(a)", {1}, of(UnaryOp::kReciprocal)},
          {"y = Neg(a)", {1}, of(UnaryOp::kNegate)},
          {"two = Constant<value_float = 2.0>() y = Pow(a, two)",
           {1},
           of(UnaryOp::kSquare)}};
}

// One result a row.
template <typename T>
std::vector<Case<T>> ReductionCases() {
  using C = ComputeType<T>;
  const auto node = [](std::string_view op) {
    return fmt::format("y = {}<axes = [1]>(a)", op);
  };
  return {{node("ReduceSum"),
           {1},
           [](const T* a, const T*, T* y) { *y = Rounded<T>(SumRow(a, kN)); },
           1},
          {node("ReduceMean"),
           {1},
           [](const T* a, const T*, T* y) {
             *y = Rounded<T>(SumRow(a, kN) / static_cast<C>(kN));
           },
           1},
          {node("ReduceSumSquare"),
           {1},
           [](const T* a, const T*, T* y) {
             *y = Rounded<T>(SumOfSquaresRow(a, kN));
           },
           1},
          {node("ReduceL2"),
           {1},
           [](const T* a, const T*, T* y) {
             *y = Rounded<T>(std::sqrt(SumOfSquaresRow(a, kN)));
           },
           1},
          {node("ReduceMax"),
           {1},
           [](const T* a, const T*, T* y) { *y = Rounded<T>(MaxRow(a, kN)); },
           1}};
}

template <typename T>
Case<T> SoftmaxCase() {
  return {"y = Softmax(a)", {1}, [](const T* a, const T*, T* y) {
            BinaryRowScalar(BinaryOp::kSubtract, a, Rounded<T>(MaxRow(a, kN)),
                            y, kN);
            UnaryRow(UnaryOp::kExponential, y, y, kN);
            BinaryRowScalar(BinaryOp::kDivide, y, Rounded<T>(SumRow(y, kN)), y,
                            kN);
          }};
}

template <typename T>
std::vector<T> Expected(const Case<T>& c, const std::vector<T>& a,
                        const std::vector<T>& b) {
  std::vector<T> y(static_cast<size_t>(kRows * c.y_length));
  const int64_t b_step = c.b_dims.size() == 2 ? c.b_dims[1] : 0;
  for (int64_t row = 0; row < kRows; ++row) {
    c.row(a.data() + row * kLength, b.data() + row * b_step,
          y.data() + row * c.y_length);
  }
  return y;
}

template <typename T>
void CheckCase(const Case<T>& c, const std::vector<T>& a, int threads) {
  const std::vector<T> b(
      a.rbegin(), a.rbegin() + *ElementCount(c.b_dims));  // other elements
  const std::string text = fmt::format(
      "<ir_version: 8, opset_import: [\"\" : 13]> g ({0}[] a, {0}[] b) => "
      "({0}[] y) {{ {1} }}",
      ir::DataTypeName(kTypeOf<T>), c.node);
  const auto y = RunText(
      text, {MakeTensor<T>({kRows, kLength}, a), MakeTensor<T>(c.b_dims, b)},
      threads);
  INFO(c.node << " of " << ir::DataTypeName(kTypeOf<T>) << ", " << threads
              << " threads: " << y.status());
  REQUIRE(y.ok());
  const std::vector<T> expected = Expected(c, a, b);
  REQUIRE(y->at(0).count() == static_cast<int64_t>(expected.size()));
  CHECK(FirstDifference(y->at(0).template data<T>(), expected.data(),
                        expected.size()) == expected.size());
}

template <typename T>
void CheckOps(Data data, int threads) {
  std::mt19937 random(7);
  const auto a = Row<T>(data, static_cast<size_t>(kRows * kLength), random);
  for (const auto& cases : {BinaryCases<T>(),
                            UnaryCases<T>(),
                            ReductionCases<T>(),
                            {SoftmaxCase<T>()}}) {
    for (const Case<T>& c : cases) CheckCase(c, a, threads);
  }
}

void CheckAllTypes(Data data, int threads) {
  CheckOps<float>(data, threads);
  CheckOps<double>(data, threads);
  CheckOps<Half>(data, threads);
  CheckOps<BFloat16>(data, threads);
}

TEST_CASE("Ops give the bits of the row primitives on 1 to 4 threads",
          "[runtime]") {
  for (const Data data : {Data::kNormal, Data::kSpecial}) {
    for (int threads = 1; threads <= 4; ++threads) CheckAllTypes(data, threads);
  }
}

TEST_CASE("Ops give the bits of the row primitives on every target",
          "[runtime]") {
  OnEachTarget([](const std::string& target) {
    INFO(target);
    CheckAllTypes(Data::kSpecial, 2);
  });
}

// Every half, those that are no numbers included, and floats of every kind.
template <typename T>
void CheckCasts() {
  std::vector<T> halves;
  for (uint32_t bits = 0; bits < 0x10000; ++bits)
    halves.push_back({static_cast<uint16_t>(bits)});
  std::vector<float> floats;
  for (uint64_t i = 0; i < 0x10000; ++i)
    floats.push_back(std::bit_cast<float>(static_cast<uint32_t>(i * 65521)));
  const auto run = [](const std::string& from, ir::DataType to, Tensor x) {
    const auto y = RunText(
        fmt::format("<ir_version: 8, opset_import: [\"\" : 13]> g ({}[] x) => "
                    "({}[] y) {{ y = Cast<to = {}>(x) }}",
                    from, ir::DataTypeName(to), static_cast<int>(to)),
        {std::move(x)});
    REQUIRE(y.ok());
    return y->at(0);
  };
  const std::string half = std::string(ir::DataTypeName(kTypeOf<T>));
  const Tensor wide =
      run(half, kTypeOf<float>, MakeTensor<T>({0x10000}, halves));
  const Tensor narrow =
      run("float", kTypeOf<T>, MakeTensor<float>({0x10000}, floats));
  for (size_t i = 0; i < 0x10000; ++i) {
    REQUIRE(std::bit_cast<uint32_t>(wide.data<float>()[i]) ==
            std::bit_cast<uint32_t>(Widen(halves[i])));
    REQUIRE(narrow.data<T>()[i] == Narrow<T>(floats[i]));
  }
}

TEST_CASE("Cast of half types by register is Widen and Narrow", "[runtime]") {
  OnEachTarget([](const std::string& target) {
    INFO(target);
    CheckCasts<Half>();
    CheckCasts<BFloat16>();
  });
}

}  // namespace
}  // namespace addnorm::runtime
