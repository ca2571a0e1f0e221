// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The pair as a model, which ONNX Runtime is given, is the pair that is
// measured; and ONNX Runtime itself, where it is installed.
#include "tool/bench_ort.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "runtime/executor.h"
#include "tests/support/catch.h"
#include "tests/support/sandbox.h"
#include "tool/bench_kernel.h"
#include "tool/fusion.h"

namespace addnorm::tests {
namespace {

using runtime::PairArms;
using runtime::PairBuffers;
using runtime::Tensor;
using tool::KernelCase;

// One small case of each recipe and type, with ONNX Runtime or without.
tool::KernelSweep SmallSweep() {
  tool::KernelSweep sweep;
  sweep.recipes = {"reciprocal", "divide", "late"};
  sweep.types = {ir::DataType::kFloat, ir::DataType::kFloat16,
                 ir::DataType::kBFloat16, ir::DataType::kDouble};
  sweep.shapes = {{3, 70}};
  sweep.caches = {runtime::CacheState::kCold};
  sweep.threads = {1};
  sweep.seconds = 0.001;
  sweep.cold_bytes = 1 << 20;
  return sweep;
}

Tensor AsTensor(ir::DataType type, runtime::Dims dims, const std::byte* data,
                size_t bytes) {
  return *Tensor::FromBytes(
      type, std::move(dims),
      std::string(reinterpret_cast<const char*>(data), bytes), nullptr);
}

TEST_CASE("the pair as a model gives the bits of the unfused arm", "[bench]") {
  const auto cases = tool::BenchKernels(SmallSweep());
  REQUIRE(cases.ok());
  runtime::BufferArena arena(1 << 20);
  for (const KernelCase& result : *cases) {
    const auto& setting = result.setting;
    INFO(result.recipe << " " << tool::TypeWord(setting.recipe.type));
    const auto arms = *PairArms::Create(setting, arena);
    const auto file = tool::PairModel(result.recipe, setting, arms->epsilon());
    REQUIRE(file.ok());
    const auto loaded = tool::Load(*file);
    REQUIRE(loaded.ok());
    const runtime::PairResults expected = arms->Results(0);
    const PairBuffers& set = arms->sets()[0];
    const ir::DataType type = setting.recipe.type;
    const runtime::Dims dims = {setting.rows, setting.length};
    const auto executor = *runtime::Executor::Create(*loaded->model);
    const auto outputs =
        executor->Run({AsTensor(type, dims, set.a, arms->tensor_bytes()),
                       AsTensor(type, dims, set.b, arms->tensor_bytes()),
                       AsTensor(type, {setting.length}, arms->scale().data(),
                                arms->scale().size())});
    REQUIRE(outputs.ok());
    const auto bytes = [](const std::vector<std::byte>& buffer) {
      return std::string(reinterpret_cast<const char*>(buffer.data()),
                         buffer.size());
    };
    CHECK((*outputs)[0].ToBytes() == bytes(expected.y));
    CHECK((*outputs)[1].ToBytes() == bytes(expected.sum));
  }
}

TEST_CASE("another's arm takes its turns on all buffers", "[bench]") {
  runtime::BufferArena arena(1 << 20);
  KernelCase result = tool::BenchKernels(SmallSweep())->front();
  const auto arms = *PairArms::Create(result.setting, arena);
  std::vector<size_t> seen;
  arms->AddArm("mine", [&](size_t set) { seen.push_back(set); });
  REQUIRE(arms->bench_arms().size() == runtime::kPairArmCount + 1);
  CHECK(arms->bench_arms().back().name == "mine");
  REQUIRE(arms->sets().size() >= 2);
  for (size_t i = 0; i < arms->sets().size(); ++i)
    arms->bench_arms().back().run();
  std::sort(seen.begin(), seen.end());
  for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == i);
}

TEST_CASE("ONNX Runtime's arms compute the pair on the same buffers",
          "[bench]") {
  const auto ort = tool::OnnxRuntime::Open("");
  if (!ort.ok()) {
    WARN("skipped: " << ort.status().message());
    return;
  }
  CHECK_FALSE((*ort)->version().empty());
  tool::KernelSweep sweep = SmallSweep();
  sweep.ort = ort->get();
  const auto cases = tool::BenchKernels(sweep);
  REQUIRE(cases.ok());
  for (const KernelCase& result : *cases) {
    INFO(result.recipe << " " << tool::TypeWord(result.setting.recipe.type));
    const bool has_unfused =
        !result.others.empty() && result.others[0].name == "ort unfused";
    CHECK(result.others.size() + result.not_run.size() ==
          (has_unfused ? 4 : 3));
    for (const tool::OtherArm& other : result.others) {
      INFO(other.name);
      CHECK(result.times.arms[other.arm].name == other.name);
      CHECK(result.times.arms[other.arm].Median() > 0);
      // The same function, in roundings of its own: 70 elements are few.
      CHECK(other.results.elements == 2 * 3 * 70);
      CHECK(other.results.max_ulps <= 64);
    }
    if (result.setting.recipe.type == ir::DataType::kFloat) {
      REQUIRE(result.others.size() == 4);
      CHECK(has_unfused);
      const auto& arms = result.times.arms;
      const size_t base = result.others[0].arm;
      CHECK(arms[result.others[2].arm].base == base);
      CHECK(arms[base].again == result.others[1].arm);
      CHECK(arms[0].again == 1);
    }
  }
}

TEST_CASE("a model that ONNX Runtime refuses is an arm less, with its words",
          "[bench]") {
  const auto ort = tool::OnnxRuntime::Open("");
  if (!ort.ok()) {
    WARN("skipped: " << ort.status().message());
    return;
  }
  const auto session = (*ort)->Load(
      {.bytes = "no model", .folder = {}, .inputs = {}, .outputs = {}}, 1);
  REQUIRE(!session.ok());
  CHECK(absl::IsUnimplemented(session.status()));
  CHECK(Contains(std::string(session.status().message()),
                 "ONNX Runtime " + (*ort)->version() + ": "));
}

}  // namespace
}  // namespace addnorm::tests
