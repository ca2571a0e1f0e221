// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "fmt/format.h"
#include "tests/support/catch.h"
#include "tests/support/norm_reference.h"
#include "tests/support/run_text.h"

namespace addnorm::runtime {
namespace {

using ir::DataType;
using tests::Get;

// The outputs of one node, whose operands are a, b, c, d, e as given.
absl::StatusOr<std::vector<Tensor>> RunNode(const std::string& outputs,
                                            const std::string& call,
                                            std::vector<Tensor> operands) {
  std::string inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor& x = operands[i];
    inputs += fmt::format(
        "{}{}{} {}", i == 0 ? "" : ", ", ir::DataTypeName(x.type()),
        x.rank() == 0 ? "" : ToString(x.dims()), static_cast<char>('a' + i));
  }
  std::string types;
  for (const char c : outputs)
    types += fmt::format("{}float {}", types.empty() ? "" : ", ", c);
  const std::string text = fmt::format(
      R"(<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]>
         g ({}) => ({}) {{ {} }})",
      inputs, types, call);
  return tests::RunText(text, std::move(operands), 2);
}

// A tensor of any of the four types.
Tensor Make(DataType type, Dims dims, const std::vector<double>& values) {
  Tensor tensor = *Tensor::Create(type, std::move(dims), nullptr);
  REQUIRE(static_cast<size_t>(tensor.count()) == values.size());
  for (size_t i = 0; i < values.size(); ++i)
    tests::Set(type, tensor.mutable_data<std::byte>(), i, values[i]);
  return tensor;
}

std::vector<double> Values(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.count(); ++i)
    values.push_back(Get(tensor.type(), tensor.data<std::byte>(), i));
  return values;
}

std::string Message(const absl::StatusOr<std::vector<Tensor>>& result) {
  return std::string(result.status().message());
}

// Rows {3, 4} and {6, 8} over their roots of 12.5 and 50.
TEST_CASE("RMSNormalization's scale may have any shape that broadcasts",
          "[runtime]") {
  const DataType f32 = DataType::kFloat;
  const Tensor x = Make(f32, {2, 2}, {3, 4, 6, 8});
  struct Row {
    Dims dims;
    std::vector<double> scale, by_element;
  };
  const Row rows[] = {{{2}, {10, 20}, {10, 20, 10, 20}},
                      {{1, 2}, {10, 20}, {10, 20, 10, 20}},
                      {{}, {10}, {10, 10, 10, 10}},
                      {{1}, {10}, {10, 10, 10, 10}},
                      {{2, 1}, {10, 20}, {10, 10, 20, 20}},
                      {{2, 2}, {1, 2, 3, 4}, {1, 2, 3, 4}}};
  for (const Row& row : rows) {
    INFO(ToString(row.dims));
    const auto y =
        RunNode("y", "y = RMSNormalization<axis = -1, epsilon = 0.0>(a, b)",
                {x, Make(f32, row.dims, row.scale)});
    REQUIRE(y.ok());
    for (size_t i = 0; i < 4; ++i) {
      const double root = tests::Round(f32, std::sqrt(i < 2 ? 12.5 : 50.0));
      const double normed = tests::Round(f32, Values(x)[i] / root);
      CHECK(Values((*y)[0])[i] ==
            tests::Round(f32, normed * row.by_element[i]));
    }
  }
}

TEST_CASE("RMSNormalization casts x / rms to the type of x before the scale",
          "[runtime]") {
  for (const DataType type : {DataType::kFloat16, DataType::kBFloat16}) {
    const auto y =
        RunNode("y", "y = RMSNormalization<epsilon = 0.0>(a, b)",
                {Make(type, {1, 2}, {3, 4}), Make(type, {2}, {1.5, 1.125})});
    REQUIRE(y.ok());
    const double root = tests::Round(DataType::kFloat, std::sqrt(12.5));
    CHECK((*y)[0].type() == type);
    CHECK(Values((*y)[0]) ==
          std::vector<double>{
              tests::Round(type, tests::Round(type, 3 / root) * 1.5),
              tests::Round(type, tests::Round(type, 4 / root) * 1.125)});
  }
}

TEST_CASE("SimplifiedLayerNormalization rounds once, and gives 1 / rms",
          "[runtime]") {
  const DataType f16 = DataType::kFloat16, f32 = DataType::kFloat;
  const auto out =
      RunNode("yi",
              "y, i = SimplifiedLayerNormalization<axis = 1, epsilon = 0.0, "
              "stash_type = 1>(a, b)",
              {Make(f16, {1, 2}, {3, 4}), Make(f16, {2}, {1.5, 1.125})});
  REQUIRE(out.ok());
  const double root = tests::Round(f32, std::sqrt(12.5));
  const auto scaled = [&](double v, double scale) {
    return tests::Round(f16,
                        tests::Round(f32, tests::Round(f32, v / root) * scale));
  };
  CHECK(Values((*out)[0]) ==
        std::vector<double>{scaled(3, 1.5), scaled(4, 1.125)});
  CHECK((*out)[1].dims() == Dims{1, 1});
  CHECK(Values((*out)[1]) == std::vector<double>{tests::Round(f32, 1 / root)});
}

// 1 + 2^-12 is no half, and its square tells whether it was rounded.
TEST_CASE(
    "SkipSimplifiedLayerNormalization normalises the sum that it has not "
    "rounded, and outputs it rounded",
    "[runtime]") {
  const DataType f16 = DataType::kFloat16, f32 = DataType::kFloat;
  const auto out =
      RunNode("ymis",
              "y, m, i, s = com.microsoft.SkipSimplifiedLayerNormalization"
              "<epsilon = 0.0>(a, b, c)",
              {Make(f16, {1, 1, 1}, {1}), Make(f16, {1, 1, 1}, {0x1p-12}),
               Make(f16, {1}, {1})});
  REQUIRE(out.ok());
  const double x = 1 + 0x1p-12;
  const double root = tests::Round(f32, std::sqrt(tests::Round(f32, x * x)));
  CHECK(Values((*out)[0]) ==
        std::vector<double>{tests::Round(f16, tests::Round(f32, x / root))});
  CHECK(Values((*out)[1]) == std::vector<double>{0});
  CHECK(Values((*out)[2]) == std::vector<double>{tests::Round(f32, 1 / root)});
  CHECK(Values((*out)[3]) == std::vector<double>{1});
}

TEST_CASE("SkipSimplifiedLayerNormalization repeats skip and adds the bias",
          "[runtime]") {
  const DataType f32 = DataType::kFloat;
  for (const Dims& dims : {Dims{1, 2}, Dims{2}, Dims{1, 1, 2}}) {
    const auto out =
        RunNode("ys",
                "y, , , s = com.microsoft.SkipSimplifiedLayerNormalization"
                "<epsilon = 0.0>(a, b, c, d)",
                {Make(f32, {2, 1, 2}, {1, 1, 4, 5}), Make(f32, dims, {1, 2}),
                 Make(f32, {2}, {10, 20}), Make(f32, {2}, {1, 1})});
    REQUIRE(out.ok());
    CHECK(Values((*out)[1]) == std::vector<double>{3, 4, 6, 8});
    const double root = tests::Round(f32, std::sqrt(12.5));
    CHECK(Values((*out)[0])[0] ==
          tests::Round(f32, tests::Round(f32, 3 / root) * 10));
  }
}

TEST_CASE("SkipLayerNormalization subtracts the mean and adds beta",
          "[runtime]") {
  const DataType f32 = DataType::kFloat;
  // x = {1, 3}: mean 2, variance 1.
  const auto out =
      RunNode("ymis",
              "y, m, i, s = com.microsoft.SkipLayerNormalization<epsilon = 0.0>"
              "(a, b, c, d, e)",
              {Make(f32, {1, 1, 2}, {0, 1}), Make(f32, {1, 1, 2}, {0, 1}),
               Make(f32, {2}, {10, 20}), Make(f32, {2}, {5, 6}),
               Make(f32, {2}, {1, 1})});
  REQUIRE(out.ok());
  CHECK(Values((*out)[0]) == std::vector<double>{-5, 26});
  CHECK(Values((*out)[1]) == std::vector<double>{2});
  CHECK(Values((*out)[2]) == std::vector<double>{1});
  CHECK(Values((*out)[3]) == std::vector<double>{1, 3});
}

TEST_CASE("Norms of empty tensors are empty", "[runtime]") {
  const DataType f32 = DataType::kFloat;
  for (const Dims& dims : {Dims{0, 2}, Dims{2, 0}}) {
    const auto y =
        RunNode("y", "y = RMSNormalization(a, b)",
                {Make(f32, dims, {}),
                 Make(f32, {dims[1]}, std::vector<double>(dims[1]))});
    REQUIRE(y.ok());
    CHECK((*y)[0].dims() == dims);
  }
}

TEST_CASE("Norms name the operand that does not fit", "[runtime]") {
  const DataType f32 = DataType::kFloat;
  const Tensor x = Make(f32, {2, 2}, {1, 2, 3, 4});
  CHECK_THAT(Message(RunNode("y", "y = RMSNormalization<axis = 2>(a, b)",
                             {x, Make(f32, {2}, {1, 1})})),
             ContainsSubstring("axis 2 is out of range for float[2,2]"));
  CHECK_THAT(Message(RunNode("y", "y = RMSNormalization(a, b)",
                             {x, Make(f32, {3}, {1, 1, 1})})),
             ContainsSubstring("float[3] does not expand to [2]"));
  const auto ints = RunNode(
      "y", "y = RMSNormalization(a, b)",
      {Tensor::Vector<int32_t>({1, 2}), Tensor::Vector<int32_t>({1, 2})});
  CHECK(absl::IsUnimplemented(ints.status()));
  CHECK_THAT(
      Message(RunNode(
          "y", "y = com.microsoft.SkipSimplifiedLayerNormalization(a, b, c)",
          {x, Make(f32, {3}, {1, 1, 1}), Make(f32, {2}, {1, 1})})),
      ContainsSubstring("skip is float[3], expected the shape of"));
  CHECK_THAT(
      Message(RunNode(
          "y", "y = com.microsoft.SkipSimplifiedLayerNormalization(a, b, c)",
          {x, x, Make(f32, {1, 2}, {1, 1})})),
      ContainsSubstring("gamma is float[1,2], expected float[2]"));
}

}  // namespace
}  // namespace addnorm::runtime
