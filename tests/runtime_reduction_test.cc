// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/exponential.h"
#include "runtime/row_sum.h"
#include "tests/support/catch.h"
#include "tests/support/run_text.h"

namespace addnorm::tests {
namespace {

using runtime::BFloat16;
using runtime::Dims;
using runtime::Half;
using runtime::Narrow;
using runtime::Tensor;
using runtime::Widen;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// One node of one operand, whose text says the rest.
absl::StatusOr<std::vector<Tensor>> Run(const std::string& type, int opset,
                                        const std::string& node, Tensor x,
                                        int threads = 1) {
  return RunText("<ir_version: 8, opset_import: [\"\" : " +
                     std::to_string(opset) + "]> g (" + type + "[] x) => (" +
                     type + "[] y) { " + node + " }",
                 {std::move(x)}, threads);
}

std::vector<float> Floats(int64_t n) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(std::sin(static_cast<float>(i)) * 100 + 0.3F);
  return values;
}

// The contract in other words: lanes first, then a tree.
float LaneSum(const std::vector<float>& values) {
  std::vector<float> lanes(32, 0.0F);
  for (size_t i = 0; i < values.size(); ++i) lanes[i % 32] += values[i];
  while (lanes.size() > 1) {
    const size_t half = lanes.size() / 2;
    for (size_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
    lanes.resize(half);
  }
  return lanes[0];
}

TEST_CASE("A row is summed in 32 lanes", "[runtime]") {
  for (const int64_t n : {0, 1, 31, 32, 33, 63, 1000, 4097}) {
    CAPTURE(n);
    const std::vector<float> values = Floats(n);
    CHECK(runtime::RowSum<float>(n, [&](int64_t i) { return values[i]; }) ==
          LaneSum(values));
    const auto y = Run("float", 13, "y = ReduceSum<keepdims = 0>(x)",
                       MakeTensor<float>({n}, values));
    REQUIRE(y.ok());
    CHECK(y->at(0).data<float>()[0] == LaneSum(values));
  }
}

TEST_CASE("ReduceMean of halves is rounded once", "[runtime]") {
  const std::vector<float> values = Floats(100);
  std::vector<Half> halves;
  std::vector<float> widened;
  for (const float value : values) {
    halves.push_back(Narrow<Half>(value));
    widened.push_back(Widen(halves.back()));
  }
  const auto y =
      Run("float16", 17, "y = ReduceMean(x)", MakeTensor<Half>({100}, halves));
  REQUIRE(y.ok());
  CHECK(y->at(0).data<Half>()[0] == Narrow<Half>(LaneSum(widened) / 100.0F));
}

TEST_CASE("Reductions have the same bits for any number of threads",
          "[runtime]") {
  const std::vector<float> values = Floats(40 * 50 * 60);
  for (const std::string axes : {"[0]", "[1]", "[2]", "[0, 2]", "[1, 2]"}) {
    for (const std::string op : {"ReduceMean", "ReduceL2", "ReduceLogSumExp"}) {
      CAPTURE(axes, op);
      const std::string node = "y = " + op + "<axes = " + axes + ">(x)";
      const auto run = [&](int threads) {
        return Run("float", 17, node, MakeTensor<float>({40, 50, 60}, values),
                   threads);
      };
      const auto one = run(1), four = run(4);
      REQUIRE(one.ok());
      REQUIRE(four.ok());
      CHECK(one->at(0).ToBytes() == four->at(0).ToBytes());
    }
  }
}

TEST_CASE("Reductions go over any axes", "[runtime]") {
  std::vector<int32_t> values;
  for (int32_t i = 0; i < 24; ++i) values.push_back(i);
  struct Case {
    std::string axes;
    Dims dims;
    std::vector<int32_t> sums;
  };
  const Case cases[] = {{"[0, 2]", {1, 3, 1}, {60, 92, 124}},
                        {"[-2]", {2, 1, 4}, {12, 15, 18, 21, 48, 51, 54, 57}},
                        {"[1, 0]", {1, 1, 4}, {60, 66, 72, 78}},
                        {"[2, 0, 1]", {1, 1, 1}, {276}}};
  for (const Case& c : cases) {
    CAPTURE(c.axes);
    const auto y = Run("int32", 11, "y = ReduceSum<axes = " + c.axes + ">(x)",
                       MakeTensor<int32_t>({2, 3, 4}, values));
    REQUIRE(y.ok());
    CHECK(y->at(0).dims() == c.dims);
    CHECK(ValuesOf<int32_t>(y->at(0)) == c.sums);
  }
}

TEST_CASE("Reductions of no elements have their identity", "[runtime]") {
  const std::pair<std::string, float> cases[] = {
      {"ReduceSum", 0},
      {"ReduceProd", 1},
      {"ReduceMax", -kInfinity},
      {"ReduceMin", kInfinity},
      {"ReduceL1", 0},
      {"ReduceL2", 0},
      {"ReduceSumSquare", 0},
      {"ReduceLogSum", -kInfinity},
      {"ReduceLogSumExp", -kInfinity}};
  for (const auto& [op, want] : cases) {
    CAPTURE(op);
    const auto y = Run("float", 11, "y = " + op + "<axes = [1]>(x)",
                       MakeTensor<float>({2, 0}, {}));
    REQUIRE(y.ok());
    CHECK(ValuesOf<float>(y->at(0)) == std::vector<float>(2, want));
  }
  const auto mean = Run("float", 11, "y = ReduceMean<axes = [1]>(x)",
                        MakeTensor<float>({1, 0}, {}));
  REQUIRE(mean.ok());
  CHECK(std::isnan(mean->at(0).data<float>()[0]));
  CHECK(absl::IsInvalidArgument(
      Run("int32", 11, "y = ReduceMean(x)", MakeTensor<int32_t>({0}, {}))
          .status()));
}

TEST_CASE("Reductions without axes do what the attribute says", "[runtime]") {
  const auto square = [](const std::string& attribute) {
    return Run("float", 18, "y = ReduceSumSquare<" + attribute + ">(x)",
               MakeTensor<float>({2}, {3, 4}));
  };
  CHECK(ValuesOf<float>(square("noop_with_empty_axes = 1")->at(0)) ==
        std::vector<float>{9, 16});
  CHECK(ValuesOf<float>(square("noop_with_empty_axes = 0")->at(0)) ==
        std::vector<float>{25});
}

TEST_CASE("Extremes keep NaN, LogSumExp infinities", "[runtime]") {
  const auto reduce = [](const std::string& op, std::vector<float> values) {
    const auto y = Run("float", 17, "y = " + op + "(x)",
                       MakeTensor<float>({2}, std::move(values)));
    return y->at(0).data<float>()[0];
  };
  CHECK(std::isnan(reduce("ReduceMax", {kNan, 1})));
  CHECK(std::isnan(reduce("ReduceMin", {1, kNan})));
  CHECK(reduce("ReduceLogSumExp", {-kInfinity, -kInfinity}) == -kInfinity);
  CHECK(reduce("ReduceLogSumExp", {kInfinity, 1}) == kInfinity);
  CHECK(reduce("ReduceLogSumExp", {1000, -kInfinity}) == 1000);
}

TEST_CASE("Axes out of range are refused", "[runtime]") {
  for (const std::string node :
       {"y = ReduceSum<axes = [2]>(x)", "y = ReduceMax<axes = [-3]>(x)",
        "y = Softmax<axis = 3>(x)", "y = LpNormalization<axis = -3>(x)",
        "y = LpNormalization<p = 3>(x)", "y = Hardmax<axis = -4>(x)"}) {
    CAPTURE(node);
    CHECK(absl::IsInvalidArgument(
        Run("float", 11, node, MakeTensor<float>({1, 2}, {1, 2})).status()));
  }
}

TEST_CASE("An unsupported type names the operator and the type", "[runtime]") {
  const auto y =
      Run("bool", 20, "y = ReduceSum(x)", MakeTensor<bool>({1}, {true}));
  CHECK(absl::IsUnimplemented(y.status()));
  CHECK_THAT(std::string(y.status().message()),
             ContainsSubstring("ReduceSum") && ContainsSubstring("bool"));
}

TEST_CASE("Axes without elements are no long loops", "[runtime]") {
  const int64_t many = int64_t{1} << 40;
  for (const std::string node :
       {"y = Softmax(x)", "y = LpNormalization(x)", "y = LogSoftmax(x)",
        "y = InstanceNormalization(x, x, x)"}) {
    CAPTURE(node);
    Run("float", 17, node, MakeTensor<float>({many, many, 0}, {}))
        .IgnoreError();
  }
  const auto y = Run("float", 17, "y = ReduceSum(x)",
                     MakeTensor<float>({many, 0, many}, {}));
  REQUIRE(y.ok());
  CHECK(ValuesOf<float>(y->at(0)) == std::vector<float>{0});
}

TEST_CASE("The exponential is as good as the library's", "[runtime]") {
  for (float x = -110; x < 95; x += 0.0137F) {
    const double want = std::exp(static_cast<double>(x));
    const double have = static_cast<double>(runtime::Exponential(x));
    if (want > 3.4028235e38) {
      REQUIRE(std::isinf(have));
    } else {
      REQUIRE(std::abs(have - want) <= want * 0x1p-22 + 0x1p-149);
    }
  }
  CHECK(runtime::Exponential(0.0F) == 1);
  CHECK(runtime::Exponential(-kInfinity) == 0);
  CHECK(runtime::Exponential(kInfinity) == kInfinity);
  CHECK(std::isnan(runtime::Exponential(kNan)));
}

TEST_CASE("Softmax took all axes from one on before opset 13", "[runtime]") {
  const Tensor x = MakeTensor<double>({1, 2, 2}, {0, 0, 0, std::log(5.0)});
  const auto old = Run("double", 11, "y = Softmax<axis = 1>(x)", x);
  const auto now = Run("double", 13, "y = Softmax<axis = 1>(x)", x);
  REQUIRE(old.ok());
  REQUIRE(now.ok());
  const std::vector<double> of_all = {1 / 8.0, 1 / 8.0, 1 / 8.0, 5 / 8.0};
  const std::vector<double> of_axis = {0.5, 1 / 6.0, 0.5, 5 / 6.0};
  for (size_t i = 0; i < 4; ++i) {
    CHECK(old->at(0).data<double>()[i] == Approx(of_all[i]));
    CHECK(now->at(0).data<double>()[i] == Approx(of_axis[i]));
  }
}

TEST_CASE("Hardmax marks the first of the largest", "[runtime]") {
  const auto y = Run("float", 13, "y = Hardmax<axis = 0>(x)",
                     MakeTensor<float>({3, 2}, {1, 7, 3, 7, 3, 0}));
  REQUIRE(y.ok());
  CHECK(ValuesOf<float>(y->at(0)) == std::vector<float>{0, 1, 1, 0, 0, 0});
}

TEST_CASE("LayerNormalization gives mean and deviation", "[runtime]") {
  const auto y = RunText(
      R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float16[2,2] x, float16[2] s, float16[1] b)
        => (float16[2,2] y, float[2,1] m, float[2,1] d) {
        y, m, d = LayerNormalization<epsilon = 0.0>(x, s, b) })",
      {MakeTensor<Half>({2, 2}, {Narrow<Half>(1), Narrow<Half>(5),
                                 Narrow<Half>(-4), Narrow<Half>(-3)}),
       MakeTensor<Half>({2}, {Narrow<Half>(2), Narrow<Half>(3)}),
       MakeTensor<Half>({1}, {Narrow<Half>(0.5F)})});
  REQUIRE(y.ok());
  CHECK(ValuesOf<float>(y->at(1)) == std::vector<float>{3, -3.5F});
  CHECK(ValuesOf<float>(y->at(2)) == std::vector<float>{0.5F, 2});
  std::vector<float> have;
  for (const Half value : ValuesOf<Half>(y->at(0)))
    have.push_back(Widen(value));
  CHECK(have == std::vector<float>{-1.5F, 3.5F, -1.5F, 3.5F});
}

TEST_CASE("Normalisations have scales for channels", "[runtime]") {
  const auto run = [](int opset, const std::string& node, int64_t scales) {
    std::vector<double> scale, bias;
    for (int64_t i = 0; i < scales; ++i) {
      scale.push_back(static_cast<double>(i + 1));
      bias.push_back(static_cast<double>(10 * i));
    }
    return RunText(
        "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) +
            "]> g (double[1,4,2] x, double[] s, double[] b)"
            " => (double[1,4,2] y) { y = " +
            node + "}",
        {MakeTensor<double>({1, 4, 2}, {1, 3, 1, 3, 5, 9, 5, 9}),
         MakeTensor<double>({scales}, scale),
         MakeTensor<double>({scales}, bias)});
  };
  const std::vector<double> by_channel = {-1, 1, 8, 12, 17, 23, 26, 34};
  const std::vector<double> by_group = {-1, 1, -1, 1, 8, 12, 8, 12};
  CHECK(ValuesOf<double>(
            run(21, "GroupNormalization<num_groups=2,epsilon=0.0>(x,s,b)", 4)
                ->at(0)) == by_channel);
  CHECK(ValuesOf<double>(
            run(18, "GroupNormalization<num_groups=2,epsilon=0.0>(x,s,b)", 2)
                ->at(0)) == by_group);
  CHECK(ValuesOf<double>(
            run(17, "InstanceNormalization<epsilon=0.0>(x,s,b)", 4)->at(0)) ==
        by_channel);
  CHECK(
      ValuesOf<double>(
          run(17, "BatchNormalization<epsilon=0.0>(x,s,b,b,s)", 4)->at(0))[7] ==
      Approx((9.0 - 30) / 2 * 4 + 30));
  CHECK(absl::IsInvalidArgument(
      run(21, "GroupNormalization<num_groups=3>(x,s,b)", 4).status()));
  CHECK(absl::IsInvalidArgument(
      run(17, "InstanceNormalization(x,s,b)", 3).status()));
}

}  // namespace
}  // namespace addnorm::tests
