// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory plan and the profile of runs.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/executor.h"
#include "runtime/memory_plan.h"
#include "runtime/profile.h"
#include "tests/support/catch.h"
#include "tests/support/imported.h"

namespace addnorm::runtime {
namespace {

using tests::ImportText;

// Runs on zeros of float[1000].
template <typename Observer>
void RunOn(const ir::Model& model, Observer& observer) {
  auto executor = Executor::Create(model, {.observer = &observer});
  REQUIRE(executor.ok());
  if constexpr (std::is_same_v<Observer, MemoryPlan>)
    observer.Attach(**executor);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < model.graph.inputs().size(); ++i)
    inputs.push_back(Tensor::Vector(std::vector<float>(1000)));
  const auto outputs = (*executor)->Run(inputs);
  INFO(outputs.status());
  REQUIRE(outputs.ok());
}

std::string NameOf(const ir::Value* value) {
  return value == nullptr ? "" : value->name();
}

using Buffer = PlannedValue::Buffer;

TEST_CASE("the plan knows buffers of their own, taken over and shared",
          "[runtime]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[1000] a) => (float[1000] y, float[1000] s)
    <int64[2] shape = {10, 100}, int64[1] flat = {-1}>
    {
      s = Add(a, a)
      r = Reshape(s, shape)
      f = Reshape(r, flat)
      t = Mul(f, f)
      y = Mul(t, a)
    })");
  MemoryPlan plan;
  RunOn(*model, plan);
  REQUIRE(plan.steps().size() == 5);
  const Buffer expected[] = {Buffer::kFresh, Buffer::kShared, Buffer::kShared,
                             Buffer::kFresh, Buffer::kTakenOver};
  for (size_t i = 0; i < 5; ++i) {
    INFO(i);
    CHECK(plan.steps()[i].outputs[0].buffer == expected[i]);
  }
  CHECK(NameOf(plan.steps()[4].outputs[0].from) == "t");
  CHECK(plan.peaks().kept == 20000);
  CHECK(plan.peaks().planned == 8000);
  CHECK(plan.peaks().measured == 8000);
}

TEST_CASE("a view of a weight or an input is no buffer", "[runtime]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[1000] a) => (float[10,100] y, float[2] z)
    <int64[2] shape = {10, 100}, float[2] w = {1, 2}, int64[1] two = {2}>
    { y = Reshape(a, shape) z = Reshape(w, two) })");
  MemoryPlan plan;
  RunOn(*model, plan);
  for (const PlannedStep& step : plan.steps())
    CHECK(step.outputs[0].buffer == Buffer::kOutside);
  CHECK(plan.peaks().planned == 0);
  CHECK(plan.peaks().measured == 0);
}

TEST_CASE("a Constant node's tensor is no buffer of the run", "[runtime]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[1000] a) => (float[1000] y)
    { c = Constant<value = float[2] {1, 2}>() y = Add(a, a) })");
  MemoryPlan plan;
  RunOn(*model, plan);
  CHECK(plan.peaks().planned == plan.peaks().measured);
}

TEST_CASE("what nobody reads dies where it is made", "[runtime]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    main (float[1000] a) => (float[1000] y)
    { unused = Add(a, a) y = Mul(a, a) })");
  MemoryPlan plan;
  RunOn(*model, plan);
  CHECK(NameOf(plan.steps()[0].dying.at(0)) == "unused");
  CHECK(plan.steps()[0].after == 0);
  CHECK(plan.peaks().planned == 4000);
}

TEST_CASE("planned peaks are measured peaks, inside functions and branches too",
          "[runtime]") {
  const char* models[] = {
      R"(<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
      main (float[1000] a) => (float[1000] y) {
        s = Add(a, a)
        t = my.Twice(s)
        u = my.Twice(t)
        y = Add(u, t)
      }
      <domain: "my", opset_import: ["" : 17]>
      Twice (x) => (z) { n = Mul(x, x) m = Add(n, x) z = Mul(m, n) })",
      R"(<ir_version: 8, opset_import: ["" : 17]>
      main (float[1000] a) => (float[1000] y)
      <bool c = {1}> {
        s = Add(a, a)
        t = If(c) <then_branch = t () => (float[1000] u) {
                     v = Mul(s, s) w = Add(v, s) u = Mul(w, v) },
                   else_branch = e () => (float[1000] q) { q = Add(s, s) }>
        y = Mul(t, s)
      })",
      R"(<ir_version: 8, opset_import: ["" : 17]>
      main (float[1000] a) => (float[1000] y, float[5,1000] rows)
      <int64 trips = {5}, bool keep = {1}> {
        s = Mul(a, a)
        y, rows = Loop(trips, keep, s) <body =
          b (int64 i, bool k, float[1000] x) => (bool j, float[1000] z,
                                                 float[1000] r)
          { z = Add(x, x) r = Mul(z, s) j = Identity(k) }>
      })"};
  for (const char* text : models) {
    const auto model = ImportText(text);
    MemoryPlan plan;
    RunOn(*model, plan);
    const MemoryPeaks& peaks = plan.peaks();
    CAPTURE(text, peaks.planned, peaks.measured);
    CHECK(peaks.measured > 0);
    CHECK(std::abs(static_cast<double>(peaks.planned) -
                   static_cast<double>(peaks.measured)) <=
          0.05 * static_cast<double>(peaks.measured));
    CHECK(peaks.kept >= peaks.lifetime);
  }
}

TEST_CASE("the profile counts the time inside a node once", "[runtime]") {
  const auto model = ImportText(R"(
    <ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    main (float[1000] a) => (float[1000] y) { t = my.Twice(a) y = my.Twice(t) }
    <domain: "my", opset_import: ["" : 17]>
    Twice (x) => (z) { n = Mul(x, x) z = Add(n, x) })");
  Profile profile;
  RunOn(*model, profile);
  const std::vector<NodeTime> nodes = profile.Nodes();
  REQUIRE(nodes.size() == 4);
  CHECK(std::is_sorted(nodes.begin(), nodes.end(),
                       [](const NodeTime& a, const NodeTime& b) {
                         return a.seconds > b.seconds;
                       }));
  double sum = 0;
  for (const NodeTime& node : nodes) {
    CHECK(node.runs == (node.node->op_type() == "Twice" ? 1 : 2));
    sum += node.seconds;
  }
  CHECK(profile.seconds() == Approx(sum));
  const std::vector<OpTime> ops = profile.Ops();
  REQUIRE(ops.size() == 3);
  for (const OpTime& op : ops) CHECK(op.runs == 2);
}

}  // namespace
}  // namespace addnorm::runtime
