// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/lock_step.h"
#include "tests/support/catch.h"
#include "tests/support/imported.h"
#include "tests/support/run_text.h"

namespace addnorm::runtime {
namespace {

using tests::ImportText;
using tests::MakeTensor;

// Two models whose values are twins where their names are the same, but for
// the names in `apart`.
class Pair {
 public:
  Pair(std::string_view a, std::string_view b,
       const std::vector<std::string>& apart = {})
      : a_(ImportText(Whole(a))), b_(ImportText(Whole(b))) {
    run_a_ = Executor::Create(*a_).value();
    run_b_ = Executor::Create(*b_).value();
    for (const ir::Value* value : b_->graph.values()) {
      if (std::count(apart.begin(), apart.end(), value->name()) > 0) continue;
      const ir::Value* twin = a_->graph.FindValue(value->name());
      if (twin != nullptr) twins_.values[value] = twin;
    }
  }

  void SetOwn(std::string_view output) {
    twins_.own.insert(b_->graph.FindValue(output)->producer());
  }

  void SetCounterpart(std::string_view of_b, std::string_view of_a) {
    twins_.counterparts[b_->graph.FindValue(of_b)] = a_->graph.FindValue(of_a);
  }

  absl::StatusOr<LockStepResult> Run(Sharing sharing = Sharing::kTwins) {
    LockStep lock_step(*run_a_, *run_b_, twins_);
    return lock_step.Run({MakeTensor<float>({2}, {1, 4})}, sharing);
  }

  const Executor& b() const { return *run_b_; }
  const Executor& a() const { return *run_a_; }

 private:
  static std::string Whole(std::string_view nodes) {
    return std::string(R"(<ir_version: 8, opset_import: ["" : 17]>
      main (float[2] x) => (float[2] y) <float[2] w = {3, 5}> )") +
           std::string(nodes);
  }

  std::unique_ptr<ir::Model> a_, b_;
  std::unique_ptr<Executor> run_a_, run_b_;
  Twins twins_;
};

constexpr std::string_view kModel =
    "{ s = Add(x, w) t = Mul(s, w) u = Sqrt(t) y = Neg(u) }";

TEST_CASE("what both compute alike is computed once", "[lock_step]") {
  const LockStepResult result = Pair(kModel, kModel).Run().value();
  CHECK(result.a_nodes == 4);
  CHECK(result.b_nodes == 0);
  CHECK(result.own.empty());
  REQUIRE(result.outputs.size() == 1);
  CHECK(result.outputs[0].is_equal());
  CHECK(result.outputs[0].elements == 2);
}

TEST_CASE("a marked node runs and is compared", "[lock_step]") {
  Pair pair(kModel, kModel);
  pair.SetOwn("t");
  const LockStepResult result = pair.Run().value();
  CHECK(result.b_nodes == 1);
  REQUIRE(result.own.size() == 1);
  CHECK(result.own[0].value->name() == "t");
  CHECK(result.own[0].comparison.is_equal());
  CHECK(result.own[0].comparison.elements == 2);
}

TEST_CASE("what depends on a difference is B's own", "[lock_step]") {
  Pair pair(kModel, "{ s = Add(x, w) t = Sub(s, w) u = Sqrt(t) y = Neg(u) }");
  const LockStepResult result = pair.Run().value();
  // Called twins or not: t is, but another node makes it. Nothing says so
  // until it is run.
  CHECK(result.b_nodes == 0);
  pair.SetOwn("t");
  const LockStepResult marked = pair.Run().value();
  CHECK(marked.b_nodes == 3);
  REQUIRE(marked.own.size() == 3);
  for (const ValueComparison& own : marked.own)
    CHECK_FALSE(own.comparison.is_equal());
  CHECK_FALSE(marked.outputs[0].is_equal());
  CHECK(marked.outputs[0].different == 2);
}

TEST_CASE("only weights shared: a node that is wrongly called a twin shows",
          "[lock_step]") {
  Pair pair(kModel, "{ s = Add(x, w) t = Sub(s, w) u = Sqrt(t) y = Neg(u) }");
  REQUIRE(pair.Run().value().outputs[0].is_equal());
  const LockStepResult apart = pair.Run(Sharing::kWeights).value();
  CHECK(apart.b_nodes == 4);
  REQUIRE(apart.own.size() == 4);
  CHECK(apart.own[0].comparison.is_equal());
  CHECK_FALSE(apart.own[1].comparison.is_equal());
  CHECK(apart.own[1].value->name() == "t");
  CHECK(apart.own[1].are_twins);
  CHECK_FALSE(apart.outputs[0].is_equal());
}

TEST_CASE("only weights shared: models that are the same are equal",
          "[lock_step]") {
  const LockStepResult apart =
      Pair(kModel, kModel).Run(Sharing::kWeights).value();
  CHECK(apart.b_nodes == 4);
  CHECK(apart.own.size() == 4);
  for (const ValueComparison& own : apart.own) CHECK(own.comparison.is_equal());
  CHECK(apart.outputs[0].is_equal());
}

TEST_CASE("where values are equal again, nodes are shared again",
          "[lock_step]") {
  // The sign of s is lost in its square.
  Pair pair("{ r = Sub(x, w) s = Mul(r, r) u = Sqrt(s) y = Neg(u) }",
            "{ r = Sub(w, x) s = Mul(r, r) u = Sqrt(s) y = Neg(u) }");
  pair.SetOwn("r");
  const LockStepResult result = pair.Run().value();
  CHECK(result.b_nodes == 2);
  REQUIRE(result.own.size() == 2);
  CHECK_FALSE(result.own[0].comparison.is_equal());
  CHECK(result.own[1].comparison.is_equal());
  CHECK(result.outputs[0].is_equal());
}

TEST_CASE("values without a twin are run, and the rest is compared",
          "[lock_step]") {
  const LockStepResult result =
      Pair(kModel, "{ s = Add(x, w) m = Mul(w, s) u = Sqrt(m) y = Neg(u) }")
          .Run()
          .value();
  // m, and u, which reads what is not known to be equal.
  CHECK(result.b_nodes == 2);
  CHECK(result.outputs[0].is_equal());
}

TEST_CASE("counterparts are compared, and taken from A never", "[lock_step]") {
  Pair pair(kModel, "{ r = Sub(x, w) m = Mul(r, w) u = Sqrt(m) y = Neg(u) }",
            {"u", "y"});
  pair.SetCounterpart("r", "s");
  pair.SetCounterpart("m", "t");
  const LockStepResult result = pair.Run().value();
  CHECK(result.b_nodes == 4);
  REQUIRE(result.own.size() == 2);
  CHECK(result.own[0].value->name() == "r");
  CHECK(result.own[0].expected->name() == "s");
  CHECK_FALSE(result.own[0].are_twins);
  CHECK_FALSE(result.own[0].comparison.is_equal());
  CHECK(result.own[1].expected->name() == "t");
  CHECK_FALSE(result.outputs[0].is_equal());
}

TEST_CASE("a weight that both have is read once", "[lock_step]") {
  Pair pair(kModel, kModel);
  pair.SetOwn("s");
  pair.SetOwn("t");
  REQUIRE(pair.Run().ok());
  CHECK(pair.a().weight_memory().peak() > 0);
  CHECK(pair.b().weight_memory().peak() == 0);
}

TEST_CASE("errors say in which model", "[lock_step]") {
  Pair pair(kModel,
            "{ s = Add(x, w) t = Cast<to = 11>(s) u = Mul(t, w) y = Neg(u) }",
            {"t", "u"});
  const absl::Status status = pair.Run().status();
  CHECK_THAT(std::string(status.message()), StartsWith("B: "));
  const absl::Status other =
      Pair("{ t = Cast<to = 11>(x) y = Mul(t, w) }", kModel).Run().status();
  CHECK_THAT(std::string(other.message()), StartsWith("A: "));
}

}  // namespace
}  // namespace addnorm::runtime
