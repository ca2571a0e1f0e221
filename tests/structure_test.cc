// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/structure.h"

#include <map>
#include <string>
#include <string_view>

#include "fmt/format.h"
#include "proto/import.h"
#include "proto/text.h"
#include "tests/support/catch.h"
#include "tool/constant_difference.h"
#include "tool/fusion.h"
#include "tool/structure_check.h"

namespace addnorm {
namespace {

tool::LoadedModel Load(std::string_view text) {
  auto file = proto::OpenText("m", std::string(text)).value();
  return {file, proto::Import(file).value().model};
}

absl::StatusOr<passes::Structure> TryToCompare(std::string_view a,
                                               std::string_view b) {
  return tool::CheckStructure(Load(a), Load(b));
}

passes::Structure Compare(std::string_view a, std::string_view b) {
  return TryToCompare(a, b).value();
}

std::string Model(std::string_view body, std::string_view rest = "") {
  return std::string(R"(<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
    main_graph (float[n,4] x, float[4] w, bool c) => (float[n,4] y))") +
         std::string(body) + std::string(rest);
}

constexpr std::string_view kHead =
    "<ir_version: 10, opset_import: [\"\" : 18, \"my\" : 1]> ";

struct Pair {
  std::string_view what;
  std::string_view a, b;
  std::string_view rest_a = "", rest_b = "";
};

constexpr std::string_view kFunction = R"(
  <domain: "my", opset_import: ["" : 18]>
  F <e> (a, b) => (r) { k = Constant<value_float = @e>() s = Add(a, k) r = Mul(s, b) })";

constexpr Pair kEqual[] = {
    {"strings in an initializer and in a Constant",
     R"(<string[2] s = {"a", "b"}> { y = my.Pick(x, s) })",
     R"({ s = Constant<value = string[2] {"a", "b"}>() y = my.Pick(x, s) })"},
    {"names of values in a sequence",
     R"(<int64 i = {0}> { s = SequenceConstruct(x, w) y = SequenceAt(s, i) })",
     R"(<int64 j = {0}> { t = SequenceConstruct(x, w) y = SequenceAt(t, j) })"},
    {"a type in an attribute",
     "{ o = Optional<type = float[4]>() b = OptionalHasElement(o) y = Where(b, "
     "x, w) }",
     "{ p = Optional<type = float[4]>() b = OptionalHasElement(p) y = Where(b, "
     "x, w) }"},
    {"names of inner values", "{ s = Sqrt(x) y = Mul(s, w) }",
     "{ t = Sqrt(x) y = Mul(t, w) }"},
    {"order of nodes", "{ s = Sqrt(x) t = Exp(x) y = Mul(s, t) }",
     "{ t = Exp(x) s = Sqrt(x) y = Mul(s, t) }"},
    {"an Identity between", "{ s = Sqrt(x) y = Mul(s, w) }",
     "{ i = Identity(x) s = Sqrt(i) y = Mul(s, w) }"},
    {"a node that is written twice", "{ s = Sqrt(x) y = Mul(s, s) }",
     "{ s = Sqrt(x) t = Sqrt(x) y = Mul(s, t) }"},
    {"a node that nothing reads", "{ y = Mul(x, w) }",
     "{ d = Exp(x) y = Mul(x, w) }"},
    {"an initializer and a Constant", "<float two = {2}> { y = Pow(x, two) }",
     "{ two = Constant<value_float = 2.0>() y = Pow(x, two) }"},
    {"the rank of a single element", "<float[1,1] e = {2}> { y = Add(x, e) }",
     "<float e = {2}> { y = Add(x, e) }"},
    {"a Cast of a constant that keeps its number",
     "<float e = {0.5}> { y = Add(x, e) }",
     "<float16 h = {14336}> { e = Cast<to = 1>(h) y = Add(x, e) }"},
    {"an absent attribute and its default", "{ y = Softmax(x) }",
     "{ y = Softmax<axis = -1>(x) }"},
    {"order of attributes", "{ y = Gemm<alpha = 2.0, beta = 3.0>(x, x, w) }",
     "{ y = Gemm<beta = 3.0, alpha = 2.0>(x, x, w) }"},
    {"swapped operands of a bitwise equal op",
     "{ p = Greater(x, w) q = Less(x, w) b = And(p, q) y = Where(b, x, w) }",
     "{ p = Greater(x, w) q = Less(x, w) b = And(q, p) y = Where(b, x, w) }"},
    {"a call and what it does", "{ y = my.F<e = 1.5>(x, w) }",
     "<float k = {1.5}> { s = Add(x, k) y = Mul(s, w) }", kFunction},
    {"a function's own name and those of its values",
     "{ y = my.F<e = 1.5>(x, w) }", "{ y = my.G<z = 1.5>(x, w) }", kFunction,
     R"(<domain: "my", opset_import: ["" : 18]>
        G <z> (p, q) => (o) { k = Constant<value_float = @z>() t = Add(p, k) o = Mul(t, q) })"},
    {"values that subgraphs capture",
     R"({ s = Sqrt(x)
          y = If(c) <then_branch = t () => (float[n,4] o) { o = Exp(s) },
                     else_branch = e () => (float[n,4] o) { o = Neg(s) }> })",
     R"({ r = Sqrt(x)
          y = If(c) <then_branch = t () => (float[n,4] p) { p = Exp(r) },
                     else_branch = e () => (float[n,4] q) { q = Neg(r) }> })"},
};

// More elements than are compared one by one.
std::string Zeros(std::string_view last = "0") {
  std::string text = "<value = float[100,1] {";
  for (int i = 1; i < 100; ++i) text += "0,";
  return text + std::string(last) + "}>";
}

constexpr Pair kDifferent[] = {
    {"a string", R"(<string[2] s = {"a", "b"}> { y = my.Pick(x, s) })",
     R"(<string[2] s = {"a", "c"}> { y = my.Pick(x, s) })"},
    {"where strings begin",
     R"(<string[2] s = {"ab", "c"}> { y = my.Pick(x, s) })",
     R"(<string[2] s = {"a", "bc"}> { y = my.Pick(x, s) })"},
    {"what is in a sequence",
     R"(<int64 i = {0}> { s = SequenceConstruct(x, w) y = SequenceAt(s, i) })",
     R"(<int64 i = {0}> { s = SequenceConstruct(w, x) y = SequenceAt(s, i) })"},
    {"another op", "{ y = Mul(x, w) }", "{ y = Div(x, w) }"},
    {"swapped operands of Div", "{ y = Div(x, w) }", "{ y = Div(w, x) }"},
    {"a constant one bit off", "<float e = {1.0}> { y = Add(x, e) }",
     "<float e = {1.0000001}> { y = Add(x, e) }"},
    {"the sign of a zero", "<float e = {0.0}> { y = Add(x, e) }",
     "<float e = {-0.0}> { y = Add(x, e) }"},
    {"the type of a constant", "<int64 e = {2}> { y = Pow(x, e) }",
     "<int32 e = {2}> { y = Pow(x, e) }"},
    {"the rank of a single element where it shows",
     "<float[1] e = {2}> { z = Shape(e) t = Cast<to = 1>(z) y = Add(x, t) }",
     "<float e = {2}> { z = Shape(e) t = Cast<to = 1>(z) y = Add(x, t) }"},
    {"a rank above the other operand's",
     "<float[1,1,1] e = {2}> { y = Add(x, e) }",
     "<float e = {2}> { y = Add(x, e) }"},
    {"a Cast of a constant that changes it",
     "<float e = {0.1}> { y = Add(x, e) }",
     "<float e = {0.1}> { h = Cast<to = 10>(e) f = Cast<to = 1>(h) y = Add(x, "
     "f) }"},
    {"an attribute", "{ y = Softmax<axis = -1>(x) }",
     "{ y = Softmax<axis = 0>(x) }"},
    {"an operand more", "{ y = Clip(x) }",
     "<float l = {0.0}> { y = Clip(x, l) }"},
    {"what a call is given", "{ y = my.F<e = 1.5>(x, w) }",
     "{ y = my.F<e = 2.5>(x, w) }", kFunction, kFunction},
    {"what a function does", "{ y = my.F<e = 1.5>(x, w) }",
     "{ y = my.F<e = 1.5>(x, w) }", kFunction,
     R"(<domain: "my", opset_import: ["" : 18]>
        F <e> (a, b) => (r) { k = Constant<value_float = @e>() s = Sub(a, k) r = Mul(s, b) })"},
    {"what a subgraph captures",
     R"({ s = Sqrt(x) u = Exp(x)
          y = If(c) <then_branch = t () => (float[n,4] o) { o = Exp(s) },
                     else_branch = e () => (float[n,4] o) { o = Neg(s) }> })",
     R"({ s = Sqrt(x) u = Exp(x)
          y = If(c) <then_branch = t () => (float[n,4] o) { o = Exp(s) },
                     else_branch = e () => (float[n,4] o) { o = Neg(u) }> })"},
    {"two draws of a random op, and one",
     R"({ a = RandomNormalLike(x) b = RandomNormalLike(x) s = Sub(a, b) y = Add(x, s) })",
     R"({ a = RandomNormalLike(x) s = Sub(a, a) y = Add(x, s) })"},
};

}  // namespace

TEST_CASE("a reference to what is not given leaves the function's default",
          "[structure]") {
  const auto model = [](std::string_view call) {
    return std::string(kHead) +
           "g (float[2] x) => (float[2] y) { y = my.F(x) } "
           "<domain: \"my\", opset_import: [\"\" : 18, \"my\" : 1]> "
           "F <b> (q) => (r) { r = my.G" +
           std::string(call) +
           "(q) } <domain: \"my\", opset_import: [\"\" : 18]> "
           "G <alpha: float = 0.5> (q) => (r) { "
           "r = LeakyRelu<alpha: float = @alpha>(q) }";
  };
  CHECK(
      Compare(model("<alpha: float = @b>"), model("<alpha = 0.5>")).is_equal());
  CHECK_FALSE(Compare(model("<alpha: float = @b>"), model("<alpha = 0.01>"))
                  .is_equal());
}

TEST_CASE("a Dropout before version 7 trains unless it says not to",
          "[structure]") {
  const auto model = [](std::string_view second, int is_test) {
    return fmt::format(
        "<ir_version: 8, opset_import: [\"\" : 6]> "
        "g (float[2] x) => (float[2] y) {{ a = Dropout<is_test = {0}>(x) "
        "b = Dropout<is_test = {0}>(x) y = Sub(a, {1}) }}",
        is_test, second);
  };
  CHECK_FALSE(Compare(model("b", 0), model("a", 0)).is_equal());
  CHECK(Compare(model("b", 1), model("a", 1)).is_equal());
}

TEST_CASE("operators of a set that is to come may be others", "[structure]") {
  const auto model = [](int opset) {
    return fmt::format(
        "<ir_version: 10, opset_import: [\"\" : {}]> "
        "g (float[2] x) => (float[2] y) {{ y = Neg(x) }}",
        opset);
  };
  CHECK(Compare(model(13), model(20)).is_equal());
  CHECK_FALSE(Compare(model(13), model(99)).is_equal());
}

TEST_CASE("a call of more than its function has is an error", "[structure]") {
  constexpr std::string_view kFunctionOfOne =
      " <domain: \"my\", opset_import: [\"\" : 18]> F (q) => (r) { r = Neg(q) "
      "}";
  for (const char* body : {"{ y, z = my.F(x) }", "{ y = my.F(x, x) }"}) {
    const std::string text = std::string(kHead) +
                             "g (float[2] x) => (float[2] y) " + body +
                             std::string(kFunctionOfOne);
    CHECK(TryToCompare(text, text).status().code() ==
          absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("models are equal in spite of", "[structure]") {
  for (const Pair& pair : kEqual) {
    INFO(pair.what);
    const passes::Structure structure =
        Compare(Model(pair.a, pair.rest_a), Model(pair.b, pair.rest_b));
    if (!structure.is_equal()) INFO(structure.differences[0].text);
    CHECK(structure.is_equal());
    CHECK(structure.swaps.empty());
  }
}

// Initializers of old files are inputs too, and constants all the same.
TEST_CASE("an input may become replaceable, but not a constant",
          "[structure]") {
  const auto model = [](int ir_version) {
    return "<ir_version: " + std::to_string(ir_version) +
           R"(, opset_import: ["" : 9]>
      g (float[n,4] x, float[4] w) => (float[n,4] y)
      <float[4] w = {1, 2, 3, 4}> { y = Mul(x, w) })";
  };
  CHECK(Compare(model(3), model(8)).is_equal());
  CHECK_FALSE(Compare(model(8), model(3)).is_equal());
}

TEST_CASE("large constants without names count by their elements",
          "[structure]") {
  const auto two = [](std::string_view p, std::string_view q) {
    return Model(fmt::format(
        "{{ p = Constant{}() s = Add(x, p) q = Constant{}() y = Sub(s, q) }}",
        p, q));
  };
  CHECK(Compare(two(Zeros(), Zeros()), two(Zeros(), Zeros())).is_equal());
  const std::string one = Model(fmt::format(
      "{{ p = Constant{}() s = Add(x, p) y = Sub(s, p) }}", Zeros()));
  CHECK(Compare(one, two(Zeros(), Zeros())).is_equal());
  CHECK(Compare(two(Zeros(), Zeros()), one).is_equal());
  CHECK_FALSE(
      Compare(two(Zeros(), Zeros()), two(Zeros(), Zeros("1"))).is_equal());
  CHECK_FALSE(
      Compare(two(Zeros(), Zeros("1")), two(Zeros("1"), Zeros())).is_equal());
  CHECK(Compare(two(Zeros(), Zeros("1")), two(Zeros(), Zeros("1"))).is_equal());
}

TEST_CASE("models differ by", "[structure]") {
  for (const Pair& pair : kDifferent) {
    INFO(pair.what);
    CHECK_FALSE(Compare(Model(pair.a, pair.rest_a), Model(pair.b, pair.rest_b))
                    .is_equal());
  }
}

TEST_CASE("swapped operands of Add and Mul are equal but listed",
          "[structure]") {
  const passes::Structure structure =
      Compare(Model("{ s = Add(x, w) y = Mul(s, x) }"),
              Model("{ s = Add(w, x) y = Mul(s, x) }"));
  CHECK(structure.is_equal());
  REQUIRE(structure.swaps.size() == 1);
  CHECK(structure.swaps[0].place_a == "Add making 's'");
}

TEST_CASE("a difference names the nodes on both sides", "[structure]") {
  // They live as long as the counterparts, which are values of theirs.
  const auto a = Load(Model("{ s = Sqrt(x) t = Exp(s) y = Mul(t, w) }"));
  const auto b = Load(Model("{ r = Abs(x) u = Exp(r) y = Mul(u, w) }"));
  const passes::Structure structure = tool::CheckStructure(a, b).value();
  REQUIRE(structure.differences.size() == 1);
  CHECK(structure.differences[0].place_a == "Sqrt making 's'");
  CHECK(structure.differences[0].place_b == "Abs making 'r'");
  std::map<std::string, std::string> counterparts;
  for (const auto& [of_b, of_a] : structure.counterparts)
    counterparts[of_b->name()] = of_a->name();
  CHECK(counterparts ==
        std::map<std::string, std::string>{{"r", "s"}, {"u", "t"}, {"y", "y"}});
}

TEST_CASE("a difference in a function names the call in the main graph",
          "[structure]") {
  const auto model = [](std::string_view op) {
    return Model(R"({ [outer] y, s = my.G(x, w) })", fmt::format(R"(
        <domain: "my", opset_import: ["" : 18, "my" : 1]>
        G (a, b) => (r, s) {{ [inner] r = my.H(a, b) s = Add(a, b) }}
        <domain: "my", opset_import: ["" : 18]>
        H (a, b) => (r) {{ t = {}(a) r = Mul(t, b) }})",
                                                                 op));
  };
  const passes::Structure structure = Compare(model("Sqrt"), model("Exp"));
  REQUIRE(structure.differences.size() == 1);
  CHECK(structure.differences[0].place_b ==
        "Exp making 't' in G 'outer', which makes 'y', 's'");
  const passes::Structure inlined =
      Compare(Model("{ t = Sqrt(x) y = Mul(t, w) }"), model("Exp"));
  REQUIRE(inlined.differences.size() == 1);
  CHECK(inlined.differences[0].place_a == "Sqrt making 't'");
}

TEST_CASE("long attributes are shown around what differs", "[structure]") {
  const auto model = [](int last) {
    std::string list;
    for (int i = 0; i < 200; ++i) list += fmt::format("{}, ", 1000 + i);
    return Model(
        fmt::format("{{ y = my.Op<list = [{}{}, 5]>(x, w) }}", list, last));
  };
  const std::string text = Compare(model(7), model(8)).differences[0].text;
  CHECK_THAT(text, StartsWith("my.Op<list = [1000, 1001, "));
  CHECK_THAT(text, ContainsSubstring(", 8, 5]>"));
  CHECK_THAT(text, ContainsSubstring(", expected my.Op<list = [1000"));
  CHECK_THAT(text, ContainsSubstring(", 7, 5]>"));
  CHECK(text.size() < 400);
}

TEST_CASE("constants that differ are told by their elements", "[structure]") {
  struct Row {
    std::string_view a, b, text;
  };
  constexpr Row kRows[] = {
      {"<float[4] k = {1, 2, 3, 4}> { y = Mul(x, k) }",
       "<float[4] k = {1, 2, 0.25, 4}> { y = Mul(x, k) }",
       "another constant float[4]: 1 of 4 elements differs; first [2]: 0.25 "
       "against 3"},
      {"<float16[1,4] h = {0, 15360, 0, 15360}> { k = Cast<to = 1>(h) "
       "y = Mul(x, k) }",
       "<float16[1,4] h = {0, 15360, 16384, 0}> { k = Cast<to = 1>(h) "
       "y = Mul(x, k) }",
       "another constant float16[1,4]: 2 of 4 elements differ; first [0,2]: 2 "
       "against "
       "0"},
      {"{ k = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>() y = Mul(x, k) }",
       "{ k = Constant<value_floats = [1.0, 2.0, 3.0, 0.5]>() y = Mul(x, k) }",
       "another constant float[4]: 1 of 4 elements differs; first [3]: 0.5 "
       "against 4"},
      {"<float[4] k = {1, 2, 3, 4}> { y = Mul(x, k) }",
       "<float[1,4] k = {1, 2, 3, 4}> { y = Mul(x, k) }",
       "constant float[1,4], expected float[4]"},
      {"<bool[1] k = {1}> { y = Where(k, x, w) }",
       "<bool[1] k = {0}> { y = Where(k, x, w) }",
       "another constant bool[1]: 0 against 1"},
  };
  for (const Row& row : kRows) {
    INFO(row.text);
    const auto load = [](std::string_view body) {
      auto file = proto::OpenText("m", Model(body)).value();
      return tool::LoadedModel{file, proto::Import(file).value().model};
    };
    const tool::LoadedModel a = load(row.a), b = load(row.b);
    passes::Structure structure = tool::CheckStructure(a, b).value();
    tool::ConstantDifferences(a, b).Describe(structure.differences);
    REQUIRE(structure.differences.size() == 1);
    CHECK(structure.differences[0].text == row.text);
  }
}

TEST_CASE("inputs and outputs belong to the structure", "[structure]") {
  constexpr std::string_view kA =
      "<ir_version: 10, opset_import: [\"\" : 18]> g (float[4] x) => (float[4] "
      "y) "
      "{ y = Exp(x) }";
  constexpr std::string_view kB =
      "<ir_version: 10, opset_import: [\"\" : 18]> g (float[4] x) => (float[4] "
      "z) "
      "{ z = Exp(x) }";
  const passes::Structure structure = Compare(kA, kB);
  REQUIRE(structure.differences.size() == 1);
  CHECK(structure.differences[0].text ==
        "output 0 is 'z' (float), expected 'y' (float)");
}

// Each model, and one that a proof must not take for it.
struct Trap {
  std::string_view what, a, b;
};
constexpr Trap kTraps[] = {
    {"three draws in calls that share a name",
     R"(g (float[2] x) => (float[2] y) {
          [n] a = my.F(x) [n] b = my.F(x) [n] c = my.F(x)
          d = Sub(b, c) y = Add(a, d) }
        <domain: "my", opset_import: ["" : 18]>
        F (q) => (r) { r = RandomNormalLike(q) })",
     R"(g (float[2] x) => (float[2] y) {
          [n] a = my.F(x) [n] b = my.F(x)
          d = Sub(b, b) y = Add(a, d) }
        <domain: "my", opset_import: ["" : 18]>
        F (q) => (r) { r = RandomNormalLike(q) })"},
    {"the elements of a sequence that is an input",
     "g (seq(float[2]) x) => (int64 y) { y = SequenceLength(x) }",
     "g (seq(double[2]) x) => (int64 y) { y = SequenceLength(x) }"},
    {"parameters of a loop inside a call of a loop's body",
     R"(g (int64 n, bool t) => (int64[k,m] y) {
          y = Loop(n, t)<body = b (int64 i, bool c) => (bool d, int64[m] o) {
            d = Identity(c) o = my.F(i) }> }
        <domain: "my", opset_import: ["" : 18]>
        F (q) => (r) {
          n = Constant<value_int = 2>() t = Constant<value = bool {1}>()
          r = Loop(n, t)<body = b (int64 i, bool c) => (bool d, int64 o) {
            d = Identity(c) o = Identity(q) }> })",
     R"(g (int64 n, bool t) => (int64[k,m] y) {
          y = Loop(n, t)<body = b (int64 i, bool c) => (bool d, int64[m] o) {
            d = Identity(c) o = my.F(i) }> }
        <domain: "my", opset_import: ["" : 18]>
        F (q) => (r) {
          n = Constant<value_int = 2>() t = Constant<value = bool {1}>()
          r = Loop(n, t)<body = b (int64 i, bool c) => (bool d, int64 o) {
            d = Identity(c) o = Identity(i) }> })"},
    {"a rank that only a declaration says",
     R"(g (float[2] x) => (float[k] y) <float[1,1] e = {2}, float[a,b] o> {
          o = Abs(x) p = Add(o, e) s = Shape(p) y = Cast<to = 1>(s) })",
     R"(g (float[2] x) => (float[k] y) <float e = {2}, float[a,b] o> {
          o = Abs(x) p = Add(o, e) s = Shape(p) y = Cast<to = 1>(s) })"},
    {"a rank that a reduction without axes does not have",
     R"(g (float x) => (float[k] y) <float[1] e = {2}, int64[0] a = {}> {
          m = ReduceSum(x, a) p = Add(m, e) s = Shape(p) y = Cast<to = 1>(s) })",
     R"(g (float x) => (float[k] y) <float e = {2}, int64[0] a = {}> {
          m = ReduceSum(x, a) p = Add(m, e) s = Shape(p) y = Cast<to = 1>(s) })"},
    {"a Cast of a constant below the range of float16",
     R"(g (float[2] x) => (float[2] y) <float e = {9.313225746154785e-10}> {
          h = Cast<to = 10>(e) f = Cast<to = 1>(h) y = Mul(x, f) })",
     R"(g (float[2] x) => (float[2] y) <float e = {9.313225746154785e-10}> {
          y = Mul(x, e) })"},
    {"the number of results",
     "g (float[6] x) => (float[k] y) { y, b = Split<num_outputs = 2>(x) }",
     "g (float[6] x) => (float[k] y) { y, b, c = Split<num_outputs = 2>(x) }"},
    {"an attribute of a call that is the operator's default, not the "
     "function's",
     R"(g (float[2] x) => (float[2] y) {
          a = my.LeakyRelu<alpha = 0.01>(x) b = my.LeakyRelu(x) y = Sub(a, b) }
        <domain: "my", opset_import: ["" : 18]>
        LeakyRelu <alpha: float = 0.5> (q) => (r) {
          r = LeakyRelu<alpha: float = @alpha>(q) })",
     R"(g (float[2] x) => (float[2] y) {
          a = my.LeakyRelu(x) b = my.LeakyRelu(x) y = Sub(a, b) }
        <domain: "my", opset_import: ["" : 18]>
        LeakyRelu <alpha: float = 0.5> (q) => (r) {
          r = LeakyRelu<alpha: float = @alpha>(q) })"},
    {"an attribute of another domain's norm that may have another default",
     "g (float[2] x, float[2] w) => (float[2] y) { "
     "y = my.SimplifiedLayerNormalization<epsilon = 0.00001>(x, w) }",
     "g (float[2] x, float[2] w) => (float[2] y) { "
     "y = my.SimplifiedLayerNormalization(x, w) }"},
    {"the overload of an operator that nobody knows",
     "g (float[2] x) => (float[2] y) { y = my.Op:one(x) }",
     "g (float[2] x) => (float[2] y) { y = my.Op:two(x) }"},
    {"two draws in two calls",
     R"(g (float[2] x) => (float[2] y) { a = my.F(x) b = my.F(x) y = Sub(a, b) }
        <domain: "my", opset_import: ["" : 18]>
        F (q) => (r) { r = RandomNormalLike(q) })",
     R"(g (float[2] x) => (float[2] y) { a = my.F(x) y = Sub(a, a) }
        <domain: "my", opset_import: ["" : 18]>
        F (q) => (r) { r = RandomNormalLike(q) })"},
    {"the shape of an input",
     "g (float[2,3] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }",
     "g (float[6] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }"},
};

TEST_CASE("a proof is not fooled by", "[structure]") {
  for (const Trap& trap : kTraps) {
    INFO(trap.what);
    CHECK_FALSE(Compare(std::string(kHead) + std::string(trap.a),
                        std::string(kHead) + std::string(trap.b))
                    .is_equal());
  }
}

TEST_CASE("long strings are compared too", "[structure]") {
  const auto model = [](const std::string& end) {
    return Model("<string[2] s = {\"" + std::string(3000, 'x') + "\", \"" +
                 end + "\"}> { y = my.Pick(x, s) }");
  };
  CHECK(Compare(model("a"), model("a")).is_equal());
  CHECK_FALSE(Compare(model("a"), model("b")).is_equal());
}

TEST_CASE("models with sequences as inputs are equal", "[structure]") {
  constexpr std::string_view kModel =
      "<ir_version: 10, opset_import: [\"\" : 18]> "
      "g (seq(float[2]) x, optional(float[2]) o) => (int64 y, bool b) "
      "{ y = SequenceLength(x) b = OptionalHasElement(o) }";
  CHECK(Compare(kModel, kModel).is_equal());
}

// Each function calls the next one twice: 2^levels calls of the last.
std::string Doubling(int levels, std::string_view last) {
  std::string text = Model("{ y = my.F0(x, w) }");
  for (int i = 0; i < levels; ++i) {
    text += fmt::format(
        "<domain: \"my\", opset_import: [\"\" : 18, \"my\" : 1]> "
        "F{0} (a, b) => (r) {{ p = my.F{1}(a, b) r = my.F{1}(p, a) }} ",
        i, i + 1);
  }
  return text + fmt::format(
                    "<domain: \"my\", opset_import: [\"\" : 18]> "
                    "F{} (a, b) => (r) {{ {} }}",
                    levels, last);
}

TEST_CASE("calls that double forty times are compared function by function",
          "[structure]") {
  const std::string model = Doubling(40, "s = Add(a, b) r = Sqrt(s)");
  CHECK(Compare(model, Doubling(40, "t = Add(a, b) r = Sqrt(t)")).is_equal());
  for (const char* last : {"s = Add(a, a) r = Sqrt(s)", "r = Add(a, b)"}) {
    CHECK(TryToCompare(model, Doubling(40, last)).status().code() ==
          absl::StatusCode::kUnimplemented);
  }
  CHECK_FALSE(
      TryToCompare(model, Doubling(39, "s = Add(a, b) r = Sqrt(s)")).ok());
  // Few enough to be expanded.
  CHECK(Compare(Doubling(3, "s = Add(a, b) r = Sqrt(s)"),
                Doubling(3, "t = Add(a, b) r = Sqrt(t)"))
            .is_equal());
}

TEST_CASE("files of the same bytes are equal, whatever is in them",
          "[structure]") {
  // Graphs that a function passes on by reference are not looked into.
  const std::string model =
      Model("{ y = my.F<g = t () => (float o) { o = Neg(w) }>(x) }",
            "<domain: \"my\", opset_import: [\"\" : 18]> "
            "F <g> (a) => (r) { r = If<then_branch: graph = @g, else_branch: "
            "graph = @g>(a) }");
  const passes::Structure same = Compare(model, model);
  CHECK(same.is_equal());
  CHECK_FALSE(same.twins.empty());
  std::string other = model;
  other.replace(other.find("main_graph"), 10, "other_name");
  CHECK_FALSE(TryToCompare(model, other).ok());
}

TEST_CASE("a function's default is what a call leaves out", "[structure]") {
  constexpr std::string_view kCall =
      "g (float[2] x) => (float[2] y) { y = my.F(x) } "
      "<domain: \"my\", opset_import: [\"\" : 18]> "
      "F <e: float = 0.25> (a) => (r) { r = LeakyRelu<alpha: float = @e>(a) }";
  constexpr std::string_view kNode =
      "g (float[2] x) => (float[2] y) { y = LeakyRelu<alpha = 0.25>(x) }";
  constexpr std::string_view kOther =
      "g (float[2] x) => (float[2] y) { y = LeakyRelu<alpha = 0.5>(x) }";
  const auto model = [](std::string_view text) {
    return std::string(kHead) + std::string(text);
  };
  CHECK(Compare(model(kCall), model(kNode)).is_equal());
  CHECK_FALSE(Compare(model(kCall), model(kOther)).is_equal());
}

}  // namespace addnorm
