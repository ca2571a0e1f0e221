// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Which bodies a row kernel runs, and that it gives the bits of the body.
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compare.h"
#include "runtime/executor.h"
#include "runtime/fused_calls.h"
#include "tests/support/catch.h"
#include "tests/support/imported.h"
#include "tests/support/run_text.h"

namespace addnorm::runtime {
namespace {

using tests::ImportText;
using tests::MakeTensor;

struct Body {
  std::string_view what;
  std::string_view nodes;  // of a function of (a, b, w)
  bool has_kernel = true;
};

constexpr Body kBodies[] = {
    {"a norm", R"(s = Add(a, b) q = Mul(s, s) m = ReduceMean<axes = [-1]>(q)
       e = Constant<value_float = 0.5>() p = Add(m, e) r = Sqrt(p)
       d = Div(s, r) y = Mul(d, w))"},
    {"operands in the other order",
     R"(s = Add(b, a) q = Mul(s, s) m = ReduceMean<axes = [-1]>(q)
       e = Constant<value_float = 0.5>() p = Add(e, m) r = Sqrt(p)
       d = Div(s, r) y = Mul(w, d))"},
    {"the scale on the factor",
     R"(s = Add(a, b) two = Constant<value_float = 2.0>() q = Pow(s, two)
       m = ReduceMean<axes = [-1]>(q) e = Constant<value_float = 0.5>()
       p = Add(m, e) t = Sqrt(p) r = Reciprocal(t) f = Mul(r, w)
       y = Mul(s, f))"},
    {"rounded in between",
     R"(s = Add(a, b) h = Cast<to = 10>(s) x = Cast<to = 1>(h) q = Mul(x, x)
       m = ReduceMean<axes = [-1]>(q) r = Sqrt(m) d = Div(x, r)
       y = Mul(d, w))"},
    {"epsilon from outside",
     R"(s = Add(a, b) q = Mul(s, s) m = ReduceMean<axes = [-1]>(q)
       e = Constant<value_float = @epsilon>() p = Add(m, e) r = Sqrt(p)
       d = Div(s, r) y = Mul(d, w))"},
    // No norms, or none that a recipe can say.
    {"the mean of x, not of its squares",
     R"(s = Add(a, b) m = ReduceMean<axes = [-1]>(s) q = Mul(m, m)
       r = Sqrt(q) d = Div(s, r) y = Mul(d, w))",
     false},
    {"another axis",
     R"(s = Add(a, b) q = Mul(s, s) m = ReduceMean<axes = [0]>(q)
       r = Sqrt(m) d = Div(s, r) y = Mul(d, w))",
     false},
    {"a difference",
     R"(s = Sub(a, b) q = Mul(s, s) m = ReduceMean<axes = [-1]>(q)
       r = Sqrt(m) d = Div(s, r) y = Mul(d, w))",
     false},
    {"an operand instead of the sum",
     R"(s = Add(a, b) q = Mul(s, s) m = ReduceMean<axes = [-1]>(q)
       r = Sqrt(m) d = Div(a, r) y = Mul(d, w))",
     false},
    {"the cube", R"(s = Add(a, b) three = Constant<value_float = 3.0>()
       q = Pow(s, three) m = ReduceMean<axes = [-1]>(q) t = Abs(m)
       r = Sqrt(t) d = Div(s, r) y = Mul(d, w))",
     false},
    {"no use of the scale",
     R"(s = Add(a, b) q = Mul(s, s) m = ReduceMean<axes = [-1]>(q)
       r = Sqrt(m) d = Div(s, r) y = Neg(d))",
     false},
    {"the scale twice",
     R"(s = Add(a, b) q = Mul(s, s) m = ReduceMean<axes = [-1]>(q)
       r = Sqrt(m) d = Div(s, r) f = Mul(d, w) y = Mul(f, w))",
     false},
    {"a sum that is no sum",
     R"(t = Add(a, b) q = Mul(t, t) m = ReduceMean<axes = [-1]>(q)
       r = Sqrt(m) d = Div(t, r) y = Mul(d, w) s = Neg(t))",
     false},
};

std::string ModelOf(const Body& body) {
  return R"(<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    g (float[3,5] a, float[3,5] b, float[5] w) => (float[3,5] y, float[3,5] s)
    { y, s = my.F<epsilon = 0.25>(a, b, w) }
    <domain: "my", opset_import: ["" : 17]>
    F <epsilon> (a, b, w) => (y, s) { )" +
         std::string(body.nodes) + " }";
}

class NodeCounter : public RunObserver {
 public:
  void BeforeNode(const Step&, std::span<const Tensor>) override { ++nodes; }
  int nodes = 0;
};

Tensor Random(Dims dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return MakeTensor<float>(std::move(dims), values);
}

struct Ran {
  std::vector<Tensor> outputs;
  int nodes = 0;  // the call included
};

Ran RunModel(std::string_view text, const std::vector<Tensor>& inputs,
             bool row_kernels) {
  const auto model = ImportText(text);
  NodeCounter counter;
  auto executor = Executor::Create(*model, {.observer = &counter,
                                            .row_kernels = row_kernels})
                      .value();
  auto outputs = executor->Run(inputs);
  INFO(outputs.status());
  REQUIRE(outputs.ok());
  return {*std::move(outputs), counter.nodes};
}

// Runs the text both ways, compares bits; true if a kernel did it.
bool RunsAsKernel(std::string_view text, const std::vector<Tensor>& inputs) {
  const Ran body = RunModel(text, inputs, /*row_kernels=*/false);
  const Ran ran = RunModel(text, inputs, /*row_kernels=*/true);
  REQUIRE(body.outputs.size() == ran.outputs.size());
  for (size_t i = 0; i < ran.outputs.size(); ++i)
    CHECK(Compare(body.outputs[i], ran.outputs[i]).is_equal());
  CHECK(body.nodes > 2);
  return ran.nodes == 1;
}

TEST_CASE("a body that spells a norm is run by a row kernel", "[fused_calls]") {
  const std::vector<Tensor> inputs = {Random({3, 5}, 1), Random({3, 5}, 2),
                                      Random({5}, 3)};
  for (const Body& body : kBodies) {
    INFO(body.what);
    CHECK(RunsAsKernel(ModelOf(body), inputs) == body.has_kernel);
  }
}

TEST_CASE("operands of other shapes are left to the nodes", "[fused_calls]") {
  const std::string text = R"(<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    g (float[a0,a1] a, float[b0,b1] b, float[w0] w) => (float[x,z] y, float[x,z] s)
    { y, s = my.F<epsilon = 0.25>(a, b, w) }
    <domain: "my", opset_import: ["" : 17]>
    F <epsilon> (a, b, w) => (y, s) { )" +
                           std::string(kBodies[0].nodes) + " }";
  const Tensor a = Random({3, 5}, 1);
  CHECK(RunsAsKernel(text, {a, Random({3, 5}, 2), Random({5}, 3)}));
  // One number for all elements.
  CHECK(RunsAsKernel(text, {a, Random({3, 5}, 2), Random({1}, 3)}));
  CHECK_FALSE(RunsAsKernel(text, {a, Random({1, 5}, 2), Random({5}, 3)}));
  CHECK_FALSE(RunsAsKernel(text, {a, Random({3, 1}, 2), Random({5}, 3)}));
  CHECK_FALSE(RunsAsKernel(
      text, {Random({0, 5}, 1), Random({0, 5}, 2), Random({5}, 3)}));
}

TEST_CASE("epsilon as an operand is part of the recipe", "[fused_calls]") {
  constexpr std::string_view kText = R"(
    <ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    g (float[3,5] a, float[3,5] b, float[5] w, float e, float f)
      => (float[3,5] y, float[3,5] z, float[3,5] s)
    { y, s = my.F(a, b, w, e) z,  = my.F(a, b, w, f) }
    <domain: "my", opset_import: ["" : 17]>
    F (a, b, w, e) => (y, s) {
      s = Add(a, b) q = Mul(s, s) m = ReduceMean<axes = [-1]>(q)
      p = Add(m, e) r = Sqrt(p) d = Div(s, r) y = Mul(d, w) })";
  const std::vector<Tensor> inputs = {Random({3, 5}, 1), Random({3, 5}, 2),
                                      Random({5}, 3), Tensor::Scalar(0.5F),
                                      Tensor::Scalar(0.25F)};
  const Ran body = RunModel(kText, inputs, /*row_kernels=*/false);
  const Ran ran = RunModel(kText, inputs, /*row_kernels=*/true);
  CHECK(ran.nodes == 2);
  for (size_t i = 0; i < 3; ++i)
    CHECK(Compare(body.outputs[i], ran.outputs[i]).is_equal());
  // Each call has its own.
  CHECK_FALSE(Compare(ran.outputs[0], ran.outputs[1]).is_equal());
}

TEST_CASE("a norm without scale, with and without epsilon", "[fused_calls]") {
  constexpr std::string_view kHead = R"(
    <ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    g (float[3,5] a, float[3,5] b, float[1] e) => (float[3,5] y, float[3,5] s))";
  const std::string plain = std::string(kHead) + R"({ y, s = my.F(a, b) }
    <domain: "my", opset_import: ["" : 17]>
    F (a, b) => (y, s) {
      s = Add(a, b) q = Mul(s, s) m = ReduceMean<axes = [-1]>(q)
      r = Sqrt(m) y = Div(s, r) })";
  const std::string with_epsilon =
      std::string(kHead) + R"({ y, s = my.F(a, b, e) }
    <domain: "my", opset_import: ["" : 17]>
    F (a, b, e) => (y, s) {
      s = Add(a, b) q = Mul(s, s) m = ReduceMean<axes = [-1]>(q)
      p = Add(m, e) r = Sqrt(p) y = Div(s, r) })";
  const std::vector<Tensor> inputs = {Random({3, 5}, 1), Random({3, 5}, 2),
                                      MakeTensor<float>({1}, {0.5F})};
  CHECK(RunsAsKernel(plain, inputs));
  CHECK(RunsAsKernel(with_epsilon, inputs));
}

}  // namespace
}  // namespace addnorm::runtime
