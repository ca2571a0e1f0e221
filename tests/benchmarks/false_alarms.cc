// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// How often bench sees a difference that is none, and how often one that is
// there, on this machine's clocks and with its noise: many short comparisons of
// the unfused pair with itself, and with itself and 5 or 10 % more work, judged
// as `bench` judges fused against unfused: an interval without 1, and a ratio
// beyond the noise. Not a test: it takes minutes.
//
// Each run has as many rounds, however busy the machine is.
//
//   addnorm_false_alarms [runs [rounds]]
#include <cstdlib>
#include <iterator>
#include <memory>
#include <vector>

#include "fmt/format.h"
#include "runtime/bench_harness.h"
#include "runtime/core_pinning.h"
#include "runtime/kernels/norm_recipes.h"
#include "runtime/pair_arms.h"
#include "tool/bench_result.h"
#include "tool/machine_usage.h"

namespace addnorm::tests {
namespace {

using runtime::CacheState;
using runtime::PairArms;
using runtime::PairSetting;
using runtime::Verdict;

constexpr size_t kColdBytes = size_t{256} << 20;

struct Setting {
  const char* name;
  int64_t rows;
  CacheState cache;
  int threads;
  // More work: that many rows more, in one of so many calls.
  int64_t rows_of_5_percent;
  int calls_of_5_percent;
};
constexpr Setting kSettings[] = {
    {"1x4096 warm, 1 thread, processor time", 1, CacheState::kWarm, 1, 1, 20},
    {"40x4096 cold, 1 thread, processor time", 40, CacheState::kCold, 1, 2, 1},
    {"40x4096 cold, 2 threads, wall time", 40, CacheState::kCold, 2, 2, 1},
};

// Places behind kPairArms.
enum More : size_t { kThird, kFivePercent, kTenPercent, kMoreCount };

struct Counts {
  int faster = 0, slower = 0, other = 0;
  void Add(Verdict verdict) {
    faster += verdict == Verdict::kFaster;
    slower += verdict == Verdict::kSlower;
    other += verdict != Verdict::kFaster && verdict != Verdict::kSlower;
  }
};

PairSetting PairOf(const Setting& setting, int64_t rows, uint64_t seed) {
  constexpr auto kType = ir::DataType::kFloat;
  return {.recipe = runtime::RmsNormalizationRecipe(kType, kType, kType),
          .rows = rows,
          .length = 4096,
          .cache = setting.cache,
          .threads = setting.threads,
          .seed = seed};
}

// Unfused, again, a third time, with 5 and with 10 % more.
class Comparison {
 public:
  Comparison(const Setting& setting, uint64_t seed, runtime::BufferArena& arena,
             runtime::BufferArena& more_arena)
      : setting_(setting),
        arms_(*PairArms::Create(PairOf(setting, setting.rows, seed), arena)),
        more_(*PairArms::Create(
            PairOf(setting, setting.rows_of_5_percent, seed), more_arena)) {}

  tool::BenchCase Measure(size_t rounds, uint64_t seed) {
    const auto& own = arms_->bench_arms();
    std::vector<runtime::BenchArm> arms = {own[0], own[1], own[0], own[0],
                                           own[0]};
    arms[2].name = "unfused a third time";
    arms[3].run = [&] { Run(1, calls_of_5_); };
    arms[4].run = [&] { Run(2, calls_of_10_); };
    runtime::BenchOptions options{
        .least_rounds = rounds, .most_rounds = rounds, .seed = seed};
    if (setting_.threads == 1) {
      options.now = runtime::ProcessorSeconds;
      options.wall = runtime::SteadySeconds;
    }
    return tool::MakeCase(arms, {0, 0, 0, 0, 0},
                          runtime::Interleave(arms, options));
  }

 private:
  void Run(int times, int& calls) {
    arms_->bench_arms()[0].run();
    if (++calls % setting_.calls_of_5_percent != 0) return;
    for (int i = 0; i < times; ++i) more_->bench_arms()[0].run();
  }

  const Setting& setting_;
  std::unique_ptr<PairArms> arms_, more_;
  int calls_of_5_ = 0, calls_of_10_ = 0;
};

void Report(const Setting& setting, const Counts (&counts)[kMoreCount],
            double ratios[kMoreCount], int runs) {
  const Counts& same = counts[kThird];
  fmt::print(
      "{}: the same: faster {}, slower {} of {} ({:.1f} % false); 5 % more "
      "work (measured {:.1f} %): slower in {}, faster in {}; 10 % ({:.1f} %): "
      "slower in {}, faster in {}\n",
      setting.name, same.faster, same.slower, runs,
      100.0 * (same.faster + same.slower) / runs,
      100 * (ratios[kFivePercent] / runs - 1), counts[kFivePercent].slower,
      counts[kFivePercent].faster, 100 * (ratios[kTenPercent] / runs - 1),
      counts[kTenPercent].slower, counts[kTenPercent].faster);
}

int Main(int runs, size_t rounds) {
  constexpr size_t kCount = std::size(kSettings);
  runtime::BufferArena arena(kColdBytes), more_arena(kColdBytes);
  Counts counts[kCount][kMoreCount];
  double ratios[kCount][kMoreCount] = {};
  const tool::UsageMeter meter;
  const runtime::CorePinning pinning(2);
  for (int run = 0; run < runs; ++run) {
    for (size_t i = 0; i < kCount; ++i) {
      const auto seed = static_cast<uint64_t>(run);
      Comparison comparison(kSettings[i], seed, arena, more_arena);
      const tool::BenchCase result = comparison.Measure(rounds, seed);
      for (size_t more = 0; more < kMoreCount; ++more) {
        const tool::ArmComparison judged = result.Compare(2 + more);
        counts[i][more].Add(judged.verdict);
        ratios[i][more] += judged.estimate.ratio;
      }
    }
  }
  for (size_t i = 0; i < kCount; ++i)
    Report(kSettings[i], counts[i], ratios[i], runs);
  fmt::print("{}\n", tool::UsageText(meter.Take()));
  return 0;
}

}  // namespace
}  // namespace addnorm::tests

int main(int argc, char** argv) {
  return addnorm::tests::Main(
      argc > 1 ? std::atoi(argv[1]) : 200,
      argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 60);
}
