// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include "fmt/format.h"
#include "proto/node_signatures.h"
#include "tests/support/catch.h"
#include "tests/support/imported.h"

namespace addnorm::proto {
namespace {

std::string Judge(std::string_view nodes, std::string_view functions = "",
                  int version = 17) {
  const auto model = tests::ImportText(
      fmt::format(R"(<ir_version: 8, opset_import: ["" : {}, "my" : 1]>
        main (float[2] a, float[2] b, bool c) => (float[2] y) {}
        {})",
                  version, nodes, functions));
  const absl::Status status = CheckNodeSignatures(*model);
  CHECK((status.ok() || absl::IsInvalidArgument(status)));
  return std::string(status.message());
}

TEST_CASE("signatures: what the schemas allow is allowed", "[proto]") {
  constexpr std::string_view kValid[] = {
      "{ y = Neg(a) }",
      "{ y = Clip(a) }",
      "{ y = Clip(a, , b) }",
      "{ y = Sum(a, b, a, b, a) }",
      "{ y = Neg(a, ) }",
      R"({ y = Loop( , , a)<body = g (int64 i, bool k, float[2] v)
             => (bool m, float[2] w) { m = Identity(k) w = Neg(v) }> })",
      "{ y, i = MaxPool<kernel_shape = [1]>(a) }",
      "{ y = my.Thing<x = 1>(a, a, a) }",
      // The schemas have no such operator: the runtime will say so.
      "{ y = Nothing<x = 1>(a, a, a) }",
      "{ y = Neg<__note = 1>(a) }",
  };
  for (const std::string_view nodes : kValid) {
    INFO(nodes);
    CHECK(Judge(nodes) == "");
  }
  // A call is what its function says.
  CHECK(Judge("{ y = my.F(a) }",
              R"(<domain: "my", opset_import: ["" : 17]>
                 F (a) => (r) { r = Neg(a) })") == "");
  // Axes were an attribute before version 13, and are an operand since.
  CHECK(Judge("{ y = ReduceSum<axes = [0]>(a) }", "", 12) == "");
  CHECK(Judge("{ y = ReduceSum<axes = [0]>(a) }", "", 13) ==
        "ReduceSum making 'y' (of version 13): has an attribute 'axes', "
        "expected keepdims, noop_with_empty_axes");
}

TEST_CASE("signatures: what they do not allow is named", "[proto]") {
  struct Row {
    std::string_view nodes, error;
  };
  constexpr Row kRows[] = {
      {"{ [n] y = Neg(a, b) }",
       "Neg 'n' (of version 13): has 2 operands, expected 1"},
      {"{ [n] y = Add(a) }",
       "Add 'n' (of version 14): has 1 operands, expected 2"},
      {"{ [n] y = Clip(a, a, a, a) }",
       "Clip 'n' (of version 13): has 4 operands, expected 1 to 3"},
      {"{ [n] y = Sum() }",
       "Sum 'n' (of version 13): has 0 operands, expected at least 1"},
      {"{ [n] y = Add(, b) }",
       "Add 'n' (of version 14): operand 0 ('A') is missing"},
      {"{ [n] y, z = Neg(a) }",
       "Neg 'n' (of version 13): has 2 results, expected 1"},
      {"{ [n] y = TopK(a, b) }",
       "TopK 'n' (of version 11): has 1 results, expected 2"},
      {"{ [n] y = Cast(a) }",
       "Cast 'n' (of version 13): attribute 'to' is missing, expected a value "
       "of type int"},
      {"{ [n] y = If(c)<then_branch = g () => (float[2] t) { t = Neg(a) }> }",
       "If 'n' (of version 16): attribute 'else_branch' is missing, expected a "
       "value of type graph"},
      {"{ [n] y = Neg<axis = 1>(a) }",
       "Neg 'n' (of version 13): has an attribute 'axis', expected none"},
      {R"({ y = If(c)<then_branch = g () => (float[2] t) { [m] t = Neg(a, b) },
                      else_branch = h () => (float[2] t) { t = Neg(b) }> })",
       "Neg 'm' (of version 13): has 2 operands, expected 1"},
  };
  for (const Row& row : kRows) {
    INFO(row.nodes);
    CHECK(Judge(row.nodes) == row.error);
  }
  CHECK(Judge("{ y = my.F(a) }",
              R"(<domain: "my", opset_import: ["" : 17]>
                 F (a) => (r) { [n] r = Neg(a, a) })") ==
        "function 'F': Neg 'n' (of version 13): has 2 operands, expected 1");
}

}  // namespace
}  // namespace addnorm::proto
