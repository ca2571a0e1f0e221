// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops of shapes, indices and creation, in what ONNX's node tests leave out: old
// opsets, large transposes, buffers shared and taken over, and refusals.
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "runtime/executor.h"
#include "tests/support/catch.h"
#include "tests/support/run_text.h"

namespace addnorm::runtime {
namespace {

using Outputs = absl::StatusOr<std::vector<Tensor>>;

// Runs `g (…) => (…) { … }`.
Outputs Run(int opset, std::string_view graph, std::vector<Tensor> inputs,
            int threads = 1) {
  return tests::RunText(
      fmt::format("<ir_version: 8, opset_import: [\"\" : {}]> {}", opset,
                  graph),
      std::move(inputs), threads);
}

template <typename T>
Tensor Make(Dims dims, const std::vector<T>& values) {
  return Tensor::Vector(values).WithDims(std::move(dims));
}

Tensor Bools(const std::vector<uint8_t>& values) {
  const Tensor bytes = Tensor::Vector(values);
  return bytes.WithType(ir::DataType::kBool, bytes.dims());
}

// 0, 1, 2, …
template <typename T = float>
Tensor Counting(Dims dims) {
  std::vector<T> values(static_cast<size_t>(*ElementCount(dims)));
  std::iota(values.begin(), values.end(), T{});
  return Make(std::move(dims), values);
}

template <typename T>
void CheckOutput(const Outputs& outputs, const Dims& dims,
                 const std::vector<T>& values, size_t i = 0) {
  INFO(outputs.status());
  REQUIRE(outputs.ok());
  const Tensor& y = (*outputs)[i];
  REQUIRE(y.type() == kTypeOf<T>);
  CHECK(y.dims() == dims);
  const auto elements = y.elements<T>();
  CHECK(std::vector<T>(elements.begin(), elements.end()) == values);
}

struct Case {
  int opset;
  std::string graph;
  std::vector<Tensor> inputs;
  Dims dims;
  std::vector<float> values;
};

TEST_CASE("Ops of shapes read attributes where old opsets have them",
          "[runtime]") {
  const std::vector<Case> cases = {
      {9,
       "g (float[4] x) => (y) { y = Slice<starts=[1], ends=[3]>(x) }",
       {Counting({4})},
       {2},
       {1, 2}},
      {7,
       "g (float[2] x) => (y) { y = Pad<pads=[1, 2], value=5.0>(x) }",
       {Counting({2})},
       {5},
       {5, 0, 1, 5, 5}},
      {7,
       "g (float[1, 2] x) => (y) { y = Squeeze<axes=[0]>(x) }",
       {Counting({1, 2})},
       {2},
       {0, 1}},
      {7,
       "g (float[2] x) => (y) { y = Unsqueeze<axes=[0, 2]>(x) }",
       {Counting({2})},
       {1, 2, 1},
       {0, 1}},
      {11,
       "g (float[3] x) => (y, z) { z, y = Split<split=[1, 2]>(x) }",
       {Counting({3})},
       {2},
       {1, 2}},
      {7,
       "g (float[3] x) => (y) { y, i = TopK<k=2>(x) }",
       {Counting({3})},
       {2},
       {2, 1}},
  };
  for (const Case& c : cases) {
    INFO(c.graph);
    CheckOutput(Run(c.opset, c.graph, c.inputs), c.dims, c.values);
  }
}

TEST_CASE("Slices backwards clamp as the operator says", "[runtime]") {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  struct Row {
    int64_t start, end, step;
    std::vector<float> values;
  };
  const Row rows[] = {
      {kMax, kMin, -1, {4, 3, 2, 1, 0}},
      {kMax, kMin, -2, {4, 2, 0}},
      {-2, 0, -1, {3, 2, 1}},
      {2, kMin, kMin, {2}},
      {kMin, kMax, kMax, {0}},
      {kMin, kMin, -1, {0}},
      {1, 1, -1, {}},
      {3, 1, 1, {}},
  };
  for (const Row& row : rows) {
    INFO(row.start << ":" << row.end << ":" << row.step);
    CheckOutput(
        Run(13,
            "g (float[5] x, int64[1] s, int64[1] e, int64[1] a, int64[1] t) "
            "=> (y) { y = Slice(x, s, e, a, t) }",
            {Counting({5}), Make<int64_t>({1}, {row.start}),
             Make<int64_t>({1}, {row.end}), Make<int64_t>({1}, {0}),
             Make<int64_t>({1}, {row.step})}),
        {static_cast<int64_t>(row.values.size())}, row.values);
  }
}

// perm as the definition has it, element by element.
template <typename T>
std::vector<T> Transposed(const Dims& dims, const std::vector<size_t>& perm) {
  std::vector<T> values;
  Dims place(dims.size(), 0);
  const int64_t count = *ElementCount(dims);
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n;
    for (size_t i = perm.size(); i-- > 0;) {
      place[perm[i]] = rest % dims[perm[i]];
      rest /= dims[perm[i]];
    }
    int64_t offset = 0;
    for (size_t i = 0; i < dims.size(); ++i)
      offset = offset * dims[i] + place[i];
    values.push_back(static_cast<T>(offset));
  }
  return values;
}

template <typename T>
void CheckTranspose(const Dims& dims, const std::vector<size_t>& perm,
                    int threads) {
  Dims permuted;
  for (const size_t axis : perm) permuted.push_back(dims[axis]);
  INFO(ToString(dims) << " threads " << threads);
  CheckOutput(Run(13,
                  fmt::format("g ({}[] x) => (y) {{ y = Transpose{}(x) }}",
                              ir::DataTypeName(kTypeOf<T>),
                              perm.empty() ? ""
                                           : fmt::format("<perm=[{}]>",
                                                         fmt::join(perm, ","))),
                  {Counting<T>(dims)}, threads),
              permuted, Transposed<T>(dims, perm));
}

TEST_CASE("Transpose moves blocks, rows and planes alike, on any threads",
          "[runtime]") {
  struct Row {
    Dims dims;
    std::vector<size_t> perm;
  };
  const Row rows[] = {
      {{1, 7}, {1, 0}},
      {{33, 65}, {1, 0}},
      {{200, 1300}, {1, 0}},
      {{3, 40, 50}, {0, 2, 1}},
      {{3, 40, 50}, {2, 1, 0}},
      {{4, 30, 5, 16}, {0, 2, 1, 3}},
      {{2, 3, 4, 5}, {3, 1, 0, 2}},
      {{64, 1, 33}, {2, 1, 0}},
      {{5, 0, 3}, {2, 0, 1}},
      {{}, {}},
  };
  for (const Row& row : rows) {
    for (const int threads : {1, 3}) {
      CheckTranspose<float>(row.dims, row.perm, threads);
      CheckTranspose<double>(row.dims, row.perm, threads);
      CheckTranspose<uint16_t>(row.dims, row.perm, threads);
      CheckTranspose<uint8_t>(row.dims, row.perm, threads);
    }
  }
}

TEST_CASE("Ops that only rename dims share the operand's buffer", "[runtime]") {
  const Tensor x = Counting({2, 3, 1});
  for (const std::string op :
       {"Reshape(x, s)", "Flatten(x)", "Squeeze(x)", "Unsqueeze(x, a)",
        "Transpose<perm=[0, 2, 1]>(x)", "Expand(x, s1)", "Concat<axis=0>(x)"}) {
    INFO(op);
    const Outputs outputs =
        Run(13,
            fmt::format("g (float[2, 3, 1] x) => (y) "
                        "<int64[2] s = {{3, -1}}, int64[1] a = {{0}}, "
                        "int64[1] s1 = {{1}}> {{ y = {} }}",
                        op),
            {x});
    REQUIRE(outputs.ok());
    CHECK((*outputs)[0].data<float>() == x.data<float>());
  }
}

TEST_CASE("Scatter writes over an operand that dies and over no other",
          "[runtime]") {
  const std::string graph =
      "g (float[3] x) => (y) <int64[1] i = {1}, float[1] u = {9}> "
      "{ y = ScatterElements(x, i, u) }";
  Tensor x = Counting({3});
  const float* buffer = x.data<float>();
  const Outputs kept = Run(18, graph, {x});
  CheckOutput<float>(kept, {3}, {0, 9, 2});
  CHECK(x.data<float>()[1] == 1);
  std::vector<Tensor> inputs;
  inputs.push_back(std::move(x));
  const Outputs taken = Run(18, graph, std::move(inputs));
  CheckOutput<float>(taken, {3}, {0, 9, 2});
  CHECK((*taken)[0].data<float>() == buffer);
}

TEST_CASE("A Constant is read once and never written over", "[runtime]") {
  const auto model = tests::ImportText(R"(
    <ir_version: 8, opset_import: ["" : 18]>
    g (int64[1] i) => (y) {
      c = Constant<value = float[2] {1, 2}>()
      u = Constant<value_floats = [7.0]>()
      y = ScatterElements(c, i, u)
    })");
  auto executor = Executor::Create(*model);
  REQUIRE(executor.ok());
  CheckOutput<float>((*executor)->Run({Make<int64_t>({1}, {0})}), {2}, {7, 2});
  CheckOutput<float>((*executor)->Run({Make<int64_t>({1}, {1})}), {2}, {1, 7});
}

TEST_CASE("TopK puts the lower index first among equals, NaN above all",
          "[runtime]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string graph =
      "g (float[5] x) => (i) <int64[1] k = {{4}}> "
      "{{ v, i = TopK<largest={}>(x, k) }}";
  const Tensor x = Make<float>({5}, {1, nan, 3, 3, 1});
  CheckOutput<int64_t>(Run(11, fmt::format(fmt::runtime(graph), 1), {x}), {4},
                       {1, 2, 3, 0});
  CheckOutput<int64_t>(Run(11, fmt::format(fmt::runtime(graph), 0), {x}), {4},
                       {0, 4, 2, 3});
}

TEST_CASE("Ops without node tests follow their examples in the operator set",
          "[runtime]") {
  CheckOutput<float>(
      Run(13,
          "g (float[1,4,1,2] x) => (y) { y = DepthToSpace<blocksize=2>(x) }",
          {Counting({1, 4, 1, 2})}),
      {1, 1, 2, 4}, {0, 2, 1, 3, 4, 6, 5, 7});
  CheckOutput<float>(
      Run(13,
          "g (float[1,1,2,4] x) => (y) { y = SpaceToDepth<blocksize=2>(x) }",
          {Counting({1, 1, 2, 4})}),
      {1, 4, 1, 2}, {0, 2, 1, 3, 4, 6, 5, 7});
  CheckOutput<float>(
      Run(10,
          "g (float[2,3] x) => (y) <int64[2] n = {1, 3}> "
          "{ y = ReverseSequence<batch_axis=0, time_axis=1>(x, n) }",
          {Counting({2, 3})}),
      {2, 3}, {0, 1, 2, 5, 4, 3});
  CheckOutput<float>(
      Run(11,
          "g (float[3,2] x, bool[3] c) => (y) { y = Compress<axis=0>(x, c) }",
          {Counting({3, 2}), Bools({false, true, true})}),
      {2, 2}, {2, 3, 4, 5});
  const Outputs unique = Run(
      11, "g (float[6] x) => (y, i, r, n) { y, i, r, n = Unique<sorted=0>(x) }",
      {Make<float>({6}, {2, 1, 1, 3, 4, 3})});
  CheckOutput<float>(unique, {4}, {2, 1, 3, 4});
  CheckOutput<int64_t>(unique, {4}, {0, 1, 3, 4}, 1);
  CheckOutput<int64_t>(unique, {6}, {0, 1, 1, 2, 3, 2}, 2);
  CheckOutput<int64_t>(unique, {4}, {1, 2, 2, 1}, 3);
}

TEST_CASE("Operands that do not fit are refused with what was found",
          "[runtime]") {
  struct Row {
    std::string body, message;
  };
  // x is float[2,3], i is int64[1] {9}, n is int64[1] {-7}.
  const Row rows[] = {
      {"y = Reshape(x, i)", "float[2,3] cannot have the shape [9]"},
      {"y = Reshape(x, n)", "float[2,3] cannot have the shape [-7]"},
      {"y = Transpose<perm=[0, 0]>(x)", "axis 0 is given twice"},
      {"y = Transpose<perm=[0]>(x)", "perm has 1 axes, expected 2"},
      {"y = Flatten<axis=3>(x)", "axis 3 is out of range for rank 2"},
      {"y = Squeeze(x, z)", "dim 0 of float[2,3] is not 1"},
      {"y = Unsqueeze(x, i)", "axis 9 is out of range for rank 3"},
      {"y = Concat<axis=0>(x, i)", "int64[1] does not join float[2,3]"},
      {"y = Expand(x, i)", "float[2,3] does not expand to [9]"},
      {"y = Tile(x, i)", "1 repeats are given for rank 2"},
      {"y = Pad(x, i)", "1 pads are given for 2 axes"},
      {"y = Gather(x, i)", "index 9 is out of range for an axis of length 2"},
      {"y = GatherND(x, i)", "index 9 is out of range for dim 0 of float[2,3]"},
      {"y = GatherElements(x, i)", "indices int64[1] do not fit float[2,3]"},
      {"y = ScatterElements(x, x2, x)", "is not supported"},
      {"y = ScatterND(x, z, i)", "the updates are int64[1], expected float[3]"},
      {"y = Slice(x, z, z, i)", "axis 9 is out of range for rank 2"},
      {"y, t = TopK(x, i)", "k is 9 for an axis of 3"},
      {"y = ConstantOfShape(n)", "no tensor has the shape [-7]"},
      {"y = Range(i, i, z)", "no range goes from 9 to 9 in steps of 0"},
      {"y = TensorScatter<axis=0>(x, x)", "does not fit float[2,3] along axis"},
  };
  for (const Row& row : rows) {
    INFO(row.body);
    const Outputs outputs = Run(
        24,
        fmt::format("g (float[2,3] x) => (y) <int64[1] i = {{9}}, int64[1] n = "
                    "{{-7}}, int64[1] z = {{0}}> {{ x2 = Flatten(x) {} }}",
                    row.body),
        {Counting({2, 3})});
    REQUIRE_FALSE(outputs.ok());
    CHECK_THAT(std::string(outputs.status().message()),
               ContainsSubstring(row.message));
  }
}

}  // namespace
}  // namespace addnorm::runtime
