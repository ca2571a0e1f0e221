// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_traffic.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "runtime/tensor.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

using runtime::ArmKind;
using runtime::CacheState;
using runtime::kPairArmCount;
using runtime::kPairArms;
using runtime::PairedEstimate;
using runtime::Verdict;

// Shares of the best probe from which memory is the limit, or nearly so.
constexpr double kLimited = 0.8, kPartlyLimited = 0.6;

// With more than this, shares are guesses.
constexpr double kMostNoise = 0.25;

double BestProbe(const KernelCase& result) {
  double best = 0;
  for (size_t arm = 0; arm < kPairArmCount; ++arm) {
    if (kPairArms[arm].kind == ArmKind::kProbe)
      best = std::max(best, Bandwidth(result, arm));
  }
  return best;
}

// The best that fusion does, by share of the bandwidth.
double BestFusedShare(const KernelCase& result) {
  return std::max({ShareOfBest(result, kPlain), ShareOfBest(result, kStreaming),
                   ShareOfBest(result, kInPlace)});
}

// What the second-level cache holds is limited by something else.
Limit CacheLimit(int64_t working_set, const std::string& percent) {
  return {
      "arithmetic and the cost of a call",
      fmt::format("arithmetic and the cost of a call: {} are in the "
                  "second-level cache, and bandwidth is no limit there "
                  "({} of the best probe)",
                  FormatBytes(static_cast<uint64_t>(working_set)), percent)};
}

// By the share of the bandwidth of where the tensors are.
Limit BandwidthLimit(const KernelCase& result, const std::string& where,
                     double share) {
  const std::string percent = Percent(share);
  if (share >= kLimited)
    return {where, fmt::format("{}: fused, at best, has {} of the best probe",
                               where, percent)};
  if (share >= kPartlyLimited)
    return {"mostly " + where,
            fmt::format("mostly {}: fused, at best, has {} of the best probe",
                        where, percent)};
  const bool is_half = runtime::ElementSize(result.setting.recipe.type) == 2;
  const char* other = is_half
                          ? "conversions to float and back, and the arithmetic"
                          : "the arithmetic of the norm";
  return {other,
          fmt::format("not bandwidth (fused, at best, has {} of the best "
                      "probe), but "
                      "{}",
                      percent, other)};
}

// Pairs of arms of which the one that moves less is surely slower.
std::vector<ArmComparison> AgainstModel(const KernelCase& result) {
  std::vector<ArmComparison> found;
  for (size_t less = 0; less < kPairArmCount; ++less) {
    for (size_t more = 0; more < kPairArmCount; ++more) {
      if (kPairArms[less].kind == ArmKind::kProbe ||
          kPairArms[more].kind == ArmKind::kProbe || less == 1 || more == 1 ||
          Bytes(result, less) >= Bytes(result, more))
        continue;
      ArmComparison comparison = result.times.Compare(less, more);
      if (comparison.verdict == Verdict::kSlower)
        found.push_back(std::move(comparison));
    }
  }
  return found;
}

// The model is of memory; in the caches, traffic costs little.
bool IsOutsideOfCaches(const KernelCase& result, const MachineFacts& machine) {
  return result.setting.cache != CacheState::kWarm ||
         static_cast<int64_t>(4 * result.tensor_bytes) >
             machine.last_level_cache;
}

}  // namespace

double Bytes(const KernelCase& result, size_t arm) {
  return kPairArms[arm].traffic.tensors *
         static_cast<double>(result.tensor_bytes);
}

double Bandwidth(const KernelCase& result, size_t arm) {
  const double seconds = result.times.arms[arm].Median();
  return seconds > 0 ? Bytes(result, arm) / seconds : 0;
}

double ShareOfBest(const KernelCase& result, size_t arm) {
  const double best = BestProbe(result);
  return best > 0 ? Bandwidth(result, arm) / best : 0;
}

Limit Limiter(const KernelCase& result, const MachineFacts& machine) {
  const PairedEstimate floor = result.times.Floor();
  if (floor.rounds < runtime::kLeastRounds) {
    return {"not told, too few rounds",
            fmt::format("not told: too few rounds ({})", floor.rounds)};
  }
  const double noise = runtime::NoiseFloor(floor);
  if (noise > kMostNoise) {
    return {"not to be told through the noise",
            "not to be told through a noise of " + Percent(noise)};
  }
  const double share = BestFusedShare(result);
  const auto working_set = static_cast<int64_t>(4 * result.tensor_bytes);
  const bool is_warm = result.setting.cache == CacheState::kWarm;
  if (is_warm && working_set <= machine.l2)
    return CacheLimit(working_set, Percent(share));
  const bool fits = is_warm && working_set <= machine.last_level_cache;
  return BandwidthLimit(result,
                        fmt::format("the bandwidth of {}",
                                    fits ? "the last-level cache" : "memory"),
                        share);
}

std::string OwnershipText(const KernelCase& result) {
  const PairedEstimate ratio = result.times.Estimate(kCopy, kStreamingCopy);
  if (ratio.rounds < runtime::kLeastRounds) return "";
  const std::string measured = fmt::format(
      "a copy takes {} times a streaming one (model: 1.50)", RatioText(ratio));
  if (ratio.Widest().low > 1.1) return "yes, as modelled: " + measured;
  if (ratio.Widest().high < 1.25)
    return "no, or it is hidden, so plain stores cost less than modelled: " +
           measured;
  return "not to be told: " + measured;
}

std::vector<ArmComparison> NotAsModelled(const KernelCase& result,
                                         const MachineFacts& machine) {
  if (!IsOutsideOfCaches(result, machine)) return {};
  return AgainstModel(result);
}

}  // namespace addnorm::tool
