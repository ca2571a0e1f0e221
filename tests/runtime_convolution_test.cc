// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/run_text.h"

namespace addnorm::tests {
namespace {

using runtime::Dims;
using runtime::Tensor;

std::vector<float> Numbers(const Dims& dims) {
  std::vector<float> values;
  for (int64_t i = 0; i < *runtime::ElementCount(dims); ++i)
    values.push_back(static_cast<float>(i * 7 % 11 - 5));
  return values;
}

absl::StatusOr<std::vector<Tensor>> Run(const std::string& node,
                                        const Dims& x_dims,
                                        const Dims& w_dims = {1},
                                        const Dims& b_dims = {1}) {
  return RunText(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[] x, float[] w, float[] b) => (float[] y) { y = )" +
                     node + "}",
                 {MakeTensor<float>(x_dims, Numbers(x_dims)),
                  MakeTensor<float>(w_dims, Numbers(w_dims)),
                  MakeTensor<float>(b_dims, Numbers(b_dims))},
                 2);
}

struct Axes {
  int64_t stride, dilation, begin;
};

// One result of a 2-D convolution by its definition. All integers are small, so
// floats hold the sums exactly.
float Direct(const Dims& x, const Dims& w, int64_t groups, Axes h, Axes v,
             int64_t image, int64_t channel, int64_t row, int64_t column) {
  const std::vector<float> xs = Numbers(x), ws = Numbers(w);
  float sum = Numbers({w[0]})[channel];
  const int64_t group = channel / (w[0] / groups);
  for (int64_t c = 0; c < w[1]; ++c) {
    for (int64_t i = 0; i < w[2]; ++i) {
      for (int64_t j = 0; j < w[3]; ++j) {
        const int64_t y = row * h.stride - h.begin + i * h.dilation;
        const int64_t z = column * v.stride - v.begin + j * v.dilation;
        if (y < 0 || z < 0 || y >= x[2] || z >= x[3]) continue;
        sum += xs[((image * x[1] + group * w[1] + c) * x[2] + y) * x[3] + z] *
               ws[((channel * w[1] + c) * w[2] + i) * w[3] + j];
      }
    }
  }
  return sum;
}

TEST_CASE("Conv has groups, strides, dilations and pads", "[runtime]") {
  const Dims x = {2, 4, 9, 23}, w = {6, 2, 3, 2};
  const auto y =
      Run("Conv<group = 2, strides = [2, 1], dilations = [1, 3],"
          " pads = [1, 2, 0, 1]>(x, w, b)",
          x, w, {6});
  REQUIRE(y.ok());
  const Dims want = {2, 6, 4, 23};
  REQUIRE(y->at(0).dims() == want);
  const float* have = y->at(0).data<float>();
  for (int64_t i = 0; i < y->at(0).count(); ++i) {
    REQUIRE(have[i] == Direct(x, w, 2, {2, 1, 1}, {1, 3, 2}, i / 552,
                              i / 92 % 6, i / 23 % 4, i % 23));
  }
}

TEST_CASE("Conv has any number of axes", "[runtime]") {
  const auto line = Run("Conv(x, w)", {1, 1, 5}, {1, 1, 2});
  REQUIRE(line.ok());
  CHECK(line->at(0).dims() == Dims{1, 1, 4});
  const auto volume = Run("Conv(x, w)", {1, 1, 2, 2, 2}, {1, 1, 2, 2, 2});
  REQUIRE(volume.ok());
  float sum = 0;
  for (const float value : Numbers({8})) sum += value * value;
  CHECK(ValuesOf<float>(volume->at(0)) == std::vector<float>{sum});
}

TEST_CASE("Conv pads so that sizes stay", "[runtime]") {
  const std::pair<std::string, Axes> cases[] = {{"SAME_UPPER", {2, 1, 0}},
                                                {"SAME_LOWER", {2, 1, 1}},
                                                {"VALID", {2, 1, 0}}};
  const Dims x = {1, 1, 6, 6}, w = {1, 1, 3, 3};
  for (const auto& [mode, axes] : cases) {
    CAPTURE(mode);
    const auto y = Run(
        "Conv<auto_pad = \"" + mode + "\", strides = [2, 2]>(x, w, b)", x, w);
    REQUIRE(y.ok());
    const int64_t size = mode == "VALID" ? 2 : 3;
    REQUIRE(y->at(0).dims() == Dims{1, 1, size, size});
    CHECK(y->at(0).data<float>()[size + 1] ==
          Direct(x, w, 1, axes, axes, 0, 0, 1, 1));
  }
}

TEST_CASE("Conv refuses what does not fit", "[runtime]") {
  const std::pair<std::string, std::pair<Dims, Dims>> cases[] = {
      {"Conv(x, w)", {{1, 2, 5}, {1, 1, 3}}},
      {"Conv(x, w)", {{1, 1, 2}, {1, 1, 3}}},
      {"Conv(x, w)", {{1, 1}, {1, 1}}},
      {"Conv<group = 0>(x, w)", {{1, 1, 5}, {1, 1, 3}}},
      {"Conv<strides = [0]>(x, w)", {{1, 1, 5}, {1, 1, 3}}},
      {"Conv<pads = [-1, 0]>(x, w)", {{1, 1, 5}, {1, 1, 3}}},
      {"Conv<pads = [1]>(x, w)", {{1, 1, 5}, {1, 1, 3}}},
      {"Conv<kernel_shape = [2]>(x, w)", {{1, 1, 5}, {1, 1, 3}}},
      {"Conv<auto_pad = \"NONE\">(x, w)", {{1, 1, 5}, {1, 1, 3}}},
      {"Conv(x, w, b)", {{1, 1, 5}, {2, 1, 3}}},
      {"Conv(x, w)", {{1, 1, 5}, {1, 1, 0}}},
      {"MaxPool(x)", {{1, 1, 5}, {1}}},
      {"MaxPool<kernel_shape = [9]>(x)", {{1, 1, 5}, {1}}},
      {"AveragePool<kernel_shape = [2, 2]>(x)", {{1, 1, 5}, {1}}},
      {"CausalConvWithState(x, w)", {{1, 2, 5}, {1, 1, 3}}}};
  for (const auto& [node, dims] : cases) {
    CAPTURE(node, runtime::ToString(dims.first));
    CHECK_FALSE(Run(node, dims.first, dims.second).ok());
  }
}

TEST_CASE("Conv takes batches of no images", "[runtime]") {
  const auto y = Run("Conv(x, w)", {0, 1, 5}, {3, 1, 2});
  REQUIRE(y.ok());
  CHECK(y->at(0).dims() == Dims{0, 3, 4});
}

TEST_CASE("Pooling counts and ignores the padding", "[runtime]") {
  const auto pool = [](const std::string& node) {
    const auto y = RunText(
        "<ir_version: 8, opset_import: [\"\" : 19]> g (float[1,1,2,3] x)"
        " => (float[] y) { y = " +
            node + "(x) }",
        {MakeTensor<float>({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6})});
    return y.ok() ? ValuesOf<float>(y->at(0)) : std::vector<float>();
  };
  CHECK(pool("MaxPool<kernel_shape = [2, 2]>") == std::vector<float>{5, 6});
  CHECK(pool("MaxPool<kernel_shape=[2,2],strides=[1,2],ceil_mode=1>") ==
        std::vector<float>{5, 6});
  CHECK(pool("AveragePool<kernel_shape=[2,2],pads=[1,0,0,0]>") ==
        std::vector<float>{1.5F, 2.5F, 3, 4});
  CHECK(pool("AveragePool<kernel_shape=[2,2],pads=[1,0,0,0],"
             "count_include_pad=1>") == std::vector<float>{0.75F, 1.25F, 3, 4});
  CHECK(pool("GlobalAveragePool") == std::vector<float>{3.5F});
  CHECK(pool("GlobalMaxPool") == std::vector<float>{6});
}

TEST_CASE("MaxPool tells where its results are from", "[runtime]") {
  for (const std::string order : {"0", "1"}) {
    const auto y = RunText(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1,2,2,3] x)"
        " => (float[] y, int64[] i) {"
        " y, i = MaxPool<kernel_shape = [2, 2], storage_order = " +
            order + ">(x) }",
        {MakeTensor<float>({1, 2, 2, 3},
                           {1, 9, 3, 4, 5, 6, 7, 1, 1, 1, 1, 8})});
    REQUIRE(y.ok());
    const std::vector<int64_t> want = order == "0"
                                          ? std::vector<int64_t>{1, 1, 6, 11}
                                          : std::vector<int64_t>{2, 2, 6, 11};
    CHECK(ValuesOf<int64_t>(y->at(1)) == want);
  }
}

}  // namespace
}  // namespace addnorm::tests
