// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_kernel.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "runtime/compare.h"
#include "runtime/core_pinning.h"
#include "runtime/tensor.h"
#include "tool/bench_ort.h"
#include "tool/machine_facts.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

using ir::DataType;
using runtime::CacheState;

// Enough that four times the last-level cache is the usual case; machines whose
// cache is larger than this share it among more cores than a run has.
constexpr size_t kMostColdBytes = size_t{1} << 30;
// More make no interval narrower that the machine's own moods do not widen.
constexpr size_t kMostRounds = 500;
constexpr size_t kLeastColdBytes = size_t{64} << 20;

size_t ColdBytes(const MachineFacts& machine) {
  const auto wanted = static_cast<size_t>(4 * machine.last_level_cache);
  const auto spare = static_cast<size_t>(machine.available / 4);
  return std::max(kLeastColdBytes, std::min({wanted, spare, kMostColdBytes}));
}

// Before anything is timed: a sweep that ends in the middle helps nobody.
absl::Status CheckSizes(const KernelSweep& sweep, int64_t available) {
  for (const DataType type : sweep.types) {
    for (const RowsShape& shape : sweep.shapes) {
      const double bytes = static_cast<double>(shape.rows) *
                           static_cast<double>(shape.length) *
                           static_cast<double>(runtime::ElementSize(type));
      // Four tensors, in two sets at least.
      if (8 * bytes <= static_cast<double>(available)) continue;
      return absl::ResourceExhaustedError(fmt::format(
          "--shapes {}x{}: {} for two sets of buffers, {} of memory are "
          "available",
          shape.rows, shape.length,
          FormatBytes(static_cast<uint64_t>(std::min(8 * bytes, 1e18))),
          FormatBytes(static_cast<uint64_t>(available))));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<KernelCase>> CasesOf(const KernelSweep& sweep) {
  std::vector<KernelCase> cases;
  for (const std::string& word : sweep.recipes) {
    for (const DataType type : sweep.types) {
      ASSIGN_OR_RETURN(const runtime::RmsNormRecipe recipe,
                       RecipeOf(word, type));
      for (const RowsShape& shape : sweep.shapes)
        for (const int threads : sweep.threads)
          for (const CacheState cache : sweep.caches)
            cases.push_back({.recipe = word,
                             .shape = shape,
                             .setting = {.recipe = recipe,
                                         .rows = shape.rows,
                                         .length = shape.length,
                                         .cache = cache,
                                         .threads = threads,
                                         .seed = sweep.seed}});
    }
  }
  return cases;
}

absl::StatusOr<runtime::Tensor> AsTensor(const KernelCase& result,
                                         const std::vector<std::byte>& bytes) {
  return runtime::Tensor::FromBytes(
      result.setting.recipe.type, {result.shape.rows, result.shape.length},
      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
      nullptr);
}

absl::StatusOr<runtime::Comparison> CompareResults(
    const KernelCase& result, const runtime::PairResults& expected,
    const runtime::PairResults& found) {
  runtime::Comparison all;
  for (const auto results :
       {&runtime::PairResults::y, &runtime::PairResults::sum}) {
    ASSIGN_OR_RETURN(const auto a, AsTensor(result, expected.*results));
    ASSIGN_OR_RETURN(const auto b, AsTensor(result, found.*results));
    all.Add(runtime::Compare(a, b));
  }
  return all;
}

// ONNX Runtime's arms, if there is one.
absl::StatusOr<std::unique_ptr<OrtPair>> AddOrt(const KernelSweep& sweep,
                                                runtime::PairArms& arms,
                                                KernelCase& result) {
  if (sweep.ort == nullptr) return nullptr;
  ASSIGN_OR_RETURN(auto ort,
                   OrtPair::Create(*sweep.ort, result.recipe, result.setting,
                                   result.cores, arms));
  result.not_run = ort->sides().not_run;
  const runtime::PairResults expected = arms.Results(0);
  for (const OrtSide& side : ort->sides().sides) {
    const size_t arm = runtime::kPairArmCount + result.others.size();
    ASSIGN_OR_RETURN(const runtime::Comparison results,
                     CompareResults(result, expected, arms.Results(arm)));
    RETURN_IF_ERROR(ort->failure());
    result.others.push_back({side.name, arm, results});
  }
  return ort;
}

// Each is compared with its like: ONNX Runtime's with its own unfused one,
// which is the first that it has.
std::vector<size_t> BasesOf(const KernelCase& result) {
  std::vector<size_t> bases;
  for (const runtime::PairArm& arm : runtime::kPairArms)
    bases.push_back(arm.base);
  bases.resize(bases.size() + result.others.size(), runtime::kPairArmCount);
  return bases;
}

absl::Status RunCase(const KernelSweep& sweep, runtime::BufferArena& arena,
                     std::function<bool(double)> on_progress,
                     KernelCase& result) {
  ASSIGN_OR_RETURN(const auto arms,
                   runtime::PairArms::Create(result.setting, arena));
  RETURN_IF_ERROR(arms->CheckBits());
  ASSIGN_OR_RETURN(const auto ort, AddOrt(sweep, *arms, result));
  result.tensor_bytes = arms->tensor_bytes();
  result.buffer_sets = arms->sets().size();
  runtime::BenchOptions options{.seconds = sweep.seconds,
                                .least_rounds = sweep.least_rounds,
                                .most_rounds = kMostRounds,
                                .seed = sweep.seed,
                                .on_progress = std::move(on_progress)};
  if (result.uses_processor_time()) {
    options.now = runtime::ProcessorSeconds;
    options.wall = runtime::SteadySeconds;
  }
  const UsageMeter meter;
  runtime::Timings timings = runtime::Interleave(arms->bench_arms(), options);
  result.usage = meter.Take();
  if (ort != nullptr) RETURN_IF_ERROR(ort->failure());
  result.times =
      MakeCase(arms->bench_arms(), BasesOf(result), std::move(timings));
  for (size_t arm = 0; arm < runtime::kPairArmCount; ++arm)
    result.times.arms[arm].instead = runtime::kPairArms[arm].instead;
  return absl::OkStatus();
}

}  // namespace

bool KernelCase::uses_processor_time() const {
  if (setting.threads != 1) return false;
  // Reading that clock takes about half a microsecond.
  constexpr int64_t kLeastElements = int64_t{1} << 15;
  return setting.cache != CacheState::kProducer ||
         setting.rows * setting.length >= kLeastElements;
}

absl::StatusOr<std::vector<KernelCase>> BenchKernels(const KernelSweep& sweep) {
  const MachineFacts machine = GatherMachineFacts();
  RETURN_IF_ERROR(CheckSizes(sweep, machine.available));
  runtime::BufferArena arena(sweep.cold_bytes != 0 ? sweep.cold_bytes
                                                   : ColdBytes(machine));
  ASSIGN_OR_RETURN(std::vector<KernelCase> cases, CasesOf(sweep));
  const int threads =
      *std::max_element(sweep.threads.begin(), sweep.threads.end());
  const runtime::CorePinning pinning(sweep.pins ? threads : 0);
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].cores = pinning.cores(cases[i].setting.threads);
    const auto on_progress = [&](double share) {
      if (sweep.on_progress)
        sweep.on_progress(static_cast<double>(i) + share, cases.size());
      return true;
    };
    RETURN_IF_ERROR(RunCase(sweep, arena, on_progress, cases[i]));
  }
  return cases;
}

}  // namespace addnorm::tool
