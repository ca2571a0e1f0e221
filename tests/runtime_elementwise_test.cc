// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops where ONNX's node tests do not look: broadcasts of many
// shapes, buffers taken over, extreme operands, and what is refused.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/broadcast.h"
#include "runtime/element_cast.h"
#include "runtime/float8.h"
#include "runtime/op.h"
#include "runtime/power.h"
#include "runtime/weights.h"
#include "tests/support/catch.h"
#include "tests/support/run_text.h"

namespace addnorm::runtime {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// The first output of a model of one graph: `(inputs) => (outputs) { nodes }`.
absl::StatusOr<Tensor> RunText(const std::string& graph,
                               std::vector<Tensor> inputs, int threads = 1) {
  const auto outputs = tests::RunText(
      "<ir_version: 10, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> g " +
          graph,
      std::move(inputs), threads);
  if (!outputs.ok()) return outputs.status();
  return outputs->at(0);
}

template <typename T>
Tensor Filled(Dims dims, const std::vector<T>& values) {
  return Tensor::Vector<T>(values).WithDims(std::move(dims));
}

template <typename T>
std::vector<T> Elements(const absl::StatusOr<Tensor>& tensor) {
  INFO(tensor.status().ToString());
  REQUIRE(tensor.ok());
  return {tensor->elements<T>().begin(), tensor->elements<T>().end()};
}

std::string Message(const absl::StatusOr<Tensor>& tensor) {
  return std::string(tensor.status().message());
}

int64_t Product(const Dims& dims) { return ElementCount(dims).value(); }

// Numbers 1, 2, … of that shape.
Tensor Counting(const Dims& dims) {
  std::vector<float> values(static_cast<size_t>(Product(dims)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i + 1);
  return Filled<float>(dims, values);
}

// The element of an operand that meets this element of the result.
float At(const Tensor& operand, const Dims& dims, int64_t element) {
  int64_t offset = 0, stride = 1;
  for (int64_t back = 1; back <= static_cast<int64_t>(dims.size()); ++back) {
    const int64_t index = element % dims[dims.size() - back];
    element /= dims[dims.size() - back];
    if (back > operand.rank()) continue;
    const int64_t dim = operand.dims()[operand.rank() - back];
    if (dim > 1) offset += index * stride;
    stride *= dim;
  }
  return operand.data<float>()[offset];
}

TEST_CASE("operands of any shapes that fit meet element by element",
          "[runtime]") {
  const std::vector<std::vector<Dims>> cases = {{{2, 3}, {2, 3}},
                                                {{2, 3}, {3}},
                                                {{3}, {2, 3}},
                                                {{2, 1}, {1, 3}},
                                                {{}, {2, 3}},
                                                {{1}, {}},
                                                {{2, 1, 3, 1}, {4, 1, 5}},
                                                {{2, 3, 1, 5}, {1, 3, 4, 1}},
                                                {{0, 3}, {3}},
                                                {{2, 0, 1}, {1, 1, 4}},
                                                {{5, 1, 7}, {5, 3, 1}},
                                                {{2, 3, 4}, {1, 1, 1}},
                                                {{2, 1, 1, 1, 2}, {3, 2, 1}}};
  for (const std::vector<Dims>& shapes : cases) {
    const Tensor a = Counting(shapes[0]), b = Counting(shapes[1]);
    const auto plan = BroadcastPlan::Of({&a, &b});
    REQUIRE(plan.ok());
    INFO(ToString(a.dims()) << " and " << ToString(b.dims()));
    // In parts of every size, as threads may cut them.
    for (int64_t part = 1; part <= plan->count() + 1; ++part) {
      int64_t seen = 0;
      for (int64_t begin = 0; begin < plan->count(); begin += part) {
        const int64_t end = std::min(begin + part, plan->count());
        plan->ForEachRun(
            begin, end, [&](int64_t out, const int64_t* at, int64_t length) {
              REQUIRE(out == seen);
              for (int64_t i = 0; i < length; ++i) {
                REQUIRE(a.data<float>()[at[0] + i * plan->step(0)] ==
                        At(a, plan->dims(), out + i));
                REQUIRE(b.data<float>()[at[1] + i * plan->step(1)] ==
                        At(b, plan->dims(), out + i));
              }
              seen += length;
            });
      }
      REQUIRE(seen == plan->count());
    }
  }
}

TEST_CASE("shapes that do not fit are named", "[runtime]") {
  const Tensor a = Counting({2, 3}), b = Counting({4}), none = Counting({0});
  REQUIRE(std::string(BroadcastPlan::Of({&a, &b}).status().message()) ==
          "operands of shapes [2,3] and [4] do not broadcast");
  REQUIRE(!BroadcastPlan::Of({&a, &none}).ok());
}

TEST_CASE("an op may write over an operand that dies, and not over others",
          "[runtime]") {
  const std::string chain =
      "(float[n] x, float[n] z) => (float[n] y)"
      "{ a = Add(x, z) b = Mul(a, a) c = Sub(z, b) y = Sub(c, x) }";
  const auto y = RunText(
      chain, {Filled<float>({3}, {1, 2, 3}), Filled<float>({3}, {10, 20, 30})});
  REQUIRE(Elements<float>(y) == std::vector<float>{-112, -466, -1062});
}

TEST_CASE("results do not depend on the number of threads", "[runtime]") {
  const std::string graph =
      "(float[n,m] x, float[m] z) => (float[n,m] y)"
      "{ a = Mul(x, z) b = Sigmoid(a) y = Max(b, x, z) }";
  const Tensor x = Counting({300, 401}), z = Counting({401});
  const auto one = RunText(graph, {x, z}, 1);
  for (const int threads : {2, 3, 7}) {
    const auto many = RunText(graph, {x, z}, threads);
    REQUIRE(many->ToBytes() == one->ToBytes());
  }
}

TEST_CASE("integers wrap around, and division by zero is an error",
          "[runtime]") {
  const std::string div = "(int8[n] a, int8[n] b) => (int8[n] y) { y = ";
  const Tensor least = Filled<int8_t>({1}, {-128});
  const Tensor minus_one = Filled<int8_t>({1}, {-1});
  const auto run = [&](const std::string& node, const Tensor& b) {
    return RunText(div + node + " }", {least, b});
  };
  REQUIRE(Elements<int8_t>(run("Div(a, b)", minus_one))[0] == -128);
  REQUIRE(Elements<int8_t>(run("Mod(a, b)", minus_one))[0] == 0);
  REQUIRE(Elements<int8_t>(run("Mod<fmod=1>(a, b)", minus_one))[0] == 0);
  REQUIRE(Elements<int8_t>(run("Add(a, b)", minus_one))[0] == 127);
  REQUIRE(Elements<int8_t>(run("Mul(a, b)", minus_one))[0] == -128);
  const auto zero = run("Div(a, b)", Filled<int8_t>({1}, {0}));
  REQUIRE_THAT(Message(zero),
               ContainsSubstring("the divisor int8[1] has a zero"));
  REQUIRE(!run("Mod(a, b)", Filled<int8_t>({1}, {0})).ok());
}

TEST_CASE("a NaN that an op makes or passes on is canonical", "[runtime]") {
  const float payload = std::bit_cast<float>(0xffc12345u);
  for (const std::string node :
       {"Add(a, b)", "Mul(b, a)", "Max(a, b)", "Sqrt(a)", "Pow(b, a)"}) {
    const auto y =
        RunText("(float[n] a, float[n] b) => (float[n] y) { y = " + node + " }",
                {Filled<float>({1}, {payload}), Filled<float>({1}, {3})});
    INFO(node);
    REQUIRE(std::bit_cast<uint32_t>(Elements<float>(y)[0]) == 0x7fc00000u);
  }
}

TEST_CASE("a power of two is a product, in every mixture of types",
          "[runtime]") {
  const float x = 1.1f;
  REQUIRE(Power(x, 2.0f) == x * x);
  const auto y = RunText(
      "(float[n] a, int64[m] b) => (float[n] y)"
      "{ y = Pow(a, b) }",
      {Filled<float>({3}, {x, -x, kInf}), Filled<int64_t>({1}, {2})});
  REQUIRE(Elements<float>(y) == std::vector<float>{x * x, x * x, kInf});
}

TEST_CASE("integer powers wrap around and truncate", "[runtime]") {
  REQUIRE(IntegerPower(3, 4) == 81);
  REQUIRE(IntegerPower(0, 0) == 1);
  REQUIRE(IntegerPower(2, 64) == 0);
  REQUIRE(IntegerPower(-1, -3) == -1);
  REQUIRE(IntegerPower(2, -1) == 0);
  REQUIRE(IntegerPower(0, -1) == 0);
}

template <typename To, typename From>
std::vector<To> CastAll(ir::DataType from, ir::DataType to,
                        const std::vector<From>& values,
                        SmallFloatOptions options = {}) {
  const auto cast = ElementCast::Create(from, to, options);
  REQUIRE(cast.ok());
  std::vector<To> results(values.size());
  cast->Run(values.data(), results.data(), static_cast<int64_t>(values.size()));
  return results;
}

TEST_CASE("what is out of an integer type's range has one meaning",
          "[runtime]") {
  using ir::DataType;
  const std::vector<float> values = {kNaN, kInf, -kInf, 300.7f, -1.9f};
  REQUIRE(CastAll<int64_t>(DataType::kFloat, DataType::kInt64, values) ==
          std::vector<int64_t>{0, std::numeric_limits<int64_t>::max(),
                               std::numeric_limits<int64_t>::min(), 300, -1});
  REQUIRE(CastAll<uint8_t>(DataType::kFloat, DataType::kUint8, values) ==
          std::vector<uint8_t>{0, 255, 0, 44, 255});
  REQUIRE(CastAll<uint64_t>(DataType::kFloat, DataType::kUint64,
                            std::vector<float>{0x1p63f, 0x1p64f}) ==
          std::vector<uint64_t>{uint64_t{1} << 63, ~uint64_t{0}});
  REQUIRE(CastAll<int8_t>(DataType::kInt32, DataType::kInt4,
                          std::vector<int32_t>{7, 8, -9, 200}) ==
          std::vector<int8_t>{7, -8, 7, -8});
}

TEST_CASE("a double becomes a half type with one rounding", "[runtime]") {
  // Just above the middle of 1 and the next number: rounding to float first
  // gives the middle, and then the even neighbour, which is farther.
  const std::vector<double> half = {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11};
  REQUIRE(CastAll<uint16_t>(ir::DataType::kDouble, ir::DataType::kFloat16,
                            half) == std::vector<uint16_t>{0x3c01, 0x3c00});
  const std::vector<double> small = {1e-300, -1e-300, 1e300};
  REQUIRE(
      CastAll<uint16_t>(ir::DataType::kDouble, ir::DataType::kFloat16, small) ==
      std::vector<uint16_t>{0x0000, 0x8000, 0x7c00});
}

TEST_CASE("every number of a small float type survives a round trip",
          "[runtime]") {
  using ir::DataType;
  for (const DataType type :
       {DataType::kFloat8E4M3FN, DataType::kFloat8E4M3FNUZ,
        DataType::kFloat8E5M2, DataType::kFloat8E5M2FNUZ, DataType::kFloat8E8M0,
        DataType::kFloat4E2M1}) {
    const int codes = type == DataType::kFloat4E2M1 ? 16 : 256;
    for (int code = 0; code < codes; ++code) {
      const float value = FloatFromSmall(type, static_cast<uint8_t>(code));
      if (std::isnan(value)) continue;
      INFO(ir::DataTypeName(type) << " " << code);
      REQUIRE(SmallFromFloat(type, value, {.saturate = false}) == code);
    }
  }
}

TEST_CASE("float8 of what is too great saturates or not", "[runtime]") {
  using ir::DataType;
  const SmallFloatOptions keep = {.saturate = false};
  REQUIRE(SmallFromFloat(DataType::kFloat8E4M3FN, 464, keep) == 0x7e);
  REQUIRE(SmallFromFloat(DataType::kFloat8E4M3FN, 465, keep) == 0x7f);
  REQUIRE(SmallFromFloat(DataType::kFloat8E4M3FN, 465, {}) == 0x7e);
  REQUIRE(SmallFromFloat(DataType::kFloat8E5M2, 1e6f, keep) == 0x7c);
  REQUIRE(SmallFromFloat(DataType::kFloat8E5M2, -kInf, {}) == 0xfb);
  REQUIRE(SmallFromFloat(DataType::kFloat8E4M3FNUZ, -0.0f, {}) == 0);
  REQUIRE(SmallFromFloat(DataType::kFloat8E8M0, kInf, {}) == 254);
  REQUIRE(SmallFromFloat(DataType::kFloat8E8M0, kInf, keep) == 255);
  REQUIRE(SmallFromFloat(DataType::kFloat8E8M0, 0, keep) == 255);
}

TEST_CASE("quantisation saturates, and shares scales as their shape says",
          "[runtime]") {
  const auto blocked = RunText(
      "(float[2,5] x, float[2,2] s) => (uint8[2,5] y)"
      "{ y = QuantizeLinear<axis=1, block_size=3>(x, s) }",
      {Filled<float>({2, 5}, {1, 2, 3, 4, 5, -6, 1e30f, kInf, 9, kNaN}),
       Filled<float>({2, 2}, {1, 2, 0.5f, 4})});
  REQUIRE(Elements<uint8_t>(blocked) ==
          std::vector<uint8_t>{1, 2, 3, 2, 2, 0, 255, 255, 2, 0});
  const auto by_axis = RunText(
      "(int8[2,2] x, float[2] s, int8[2] z) => (float[2,2] y)"
      "{ y = DequantizeLinear<axis=0>(x, s, z) }",
      {Filled<int8_t>({2, 2}, {1, 2, 3, -128}), Filled<float>({2}, {2, 3}),
       Filled<int8_t>({2}, {1, 127})});
  REQUIRE(Elements<float>(by_axis) == std::vector<float>{0, 2, -372, -765});
}

TEST_CASE("scales of another shape, axes and blocks that cannot be are refused",
          "[runtime]") {
  const auto run = [](const std::string& attributes, const Tensor& scale) {
    return RunText(
        "(float[2,5] x, float[] s) => (uint8[2,5] y)"
        "{ y = QuantizeLinear" +
            attributes + "(x, s) }",
        {Counting({2, 5}), scale});
  };
  REQUIRE_THAT(Message(run("", Counting({3}))),
               ContainsSubstring("is float[3], expected the shape [5]"));
  REQUIRE_THAT(Message(run("<axis=2>", Counting({5}))),
               ContainsSubstring("axis 2 of float[2,5] is out of range"));
  REQUIRE_THAT(Message(run("<block_size=-1>", Counting({5}))),
               ContainsSubstring("block_size is -1"));
  REQUIRE(
      !run("<axis=1, block_size=9223372036854775807>", Counting({2, 5})).ok());
  REQUIRE(
      run("<axis=1, block_size=9223372036854775807>", Counting({2, 1})).ok());
}

TEST_CASE("operands of mixed types are refused, and types an op lacks named",
          "[runtime]") {
  const auto mixed =
      RunText("(float[n] a, int32[n] b) => (float[n] y) { y = Add(a, b) }",
              {Counting({2}), Filled<int32_t>({2}, {1, 2})});
  REQUIRE_THAT(Message(mixed),
               ContainsSubstring("operand 1 is int32[2], expected "
                                 "the type of float[2]"));
  const auto lacking =
      RunText("(bool a) => (bool y) { y = Exp(a) }", {Tensor::Scalar(true)});
  REQUIRE(absl::IsUnimplemented(lacking.status()));
}

TEST_CASE("Clip lets NaN through, and its upper bound wins", "[runtime]") {
  const auto y = RunText(
      "(float[n] x, float lo, float hi) => (float[n] y) { y = Clip(x, lo, hi) "
      "}",
      {Filled<float>({3}, {kNaN, 9, -9}), Tensor::Scalar(5.0f),
       Tensor::Scalar(2.0f)});
  const std::vector<float> clipped = Elements<float>(y);
  REQUIRE(std::isnan(clipped[0]));
  REQUIRE(clipped[1] == 2);
  REQUIRE(clipped[2] == 2);
}

TEST_CASE("activations stay finite where their exponentials would not",
          "[runtime]") {
  const auto run = [](const std::string& op) {
    return Elements<float>(
        RunText("(float[n] x) => (float[n] y) { y = " + op + "(x) }",
                {Filled<float>({3}, {-1000, 0, 1000})}));
  };
  REQUIRE(run("Sigmoid") == std::vector<float>{0, 0.5f, 1});
  REQUIRE(run("Softplus")[2] == 1000);
  REQUIRE(run("Mish") == std::vector<float>{0, 0, 1000});
  REQUIRE(run("com.microsoft.QuickGelu") == std::vector<float>{0, 0, 1000});
  REQUIRE(run("Gelu") == std::vector<float>{0, 0, 1000});
}

TEST_CASE("an output stays where it is when the op makes more than are named",
          "[runtime]") {
  const auto model = tests::ImportText(
      "<ir_version: 10, opset_import: [\"\" : 21]> g (float x) => (float y) "
      "{ y = Relu(x) }");
  ThreadPool threads(1);
  Weights weights(*model, nullptr);
  RunResources resources{threads, nullptr, weights};
  const ir::Node& node = model->graph.nodes().back();
  const OpRow row;
  OpContext op(row, node, Attributes(node, nullptr), 21, {}, 1, resources);
  const Tensor* first = *op.Output(0, ir::DataType::kFloat, {2, 3});
  REQUIRE(op.Output(7, ir::DataType::kFloat, {5}).ok());
  const Tensor* same = *op.Output(0, ir::DataType::kFloat, {2, 3});
  CHECK(first == same);
  CHECK(op.TakeOutputs().size() == 8);
}

}  // namespace
}  // namespace addnorm::runtime
