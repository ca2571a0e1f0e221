// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What --json has of bench --kernel.
#include <utility>

#include "runtime/pair_arms.h"
#include "tool/bench_kernel_report.h"
#include "tool/bench_other_report.h"
#include "tool/bench_traffic.h"

namespace addnorm::tool {
namespace {

using Json = nlohmann::ordered_json;
using runtime::ArmKind;
using runtime::kPairArmCount;
using runtime::kPairArms;
using runtime::PairArm;

// What all arms have, those of other runtimes too.
Json TimesToJson(const KernelCase& result, size_t arm, bool is_probe) {
  const ArmTimes& times = result.times.arms[arm];
  const double seconds = times.Median();
  return {{"name", times.name},
          {"is_probe", is_probe},
          {"median_seconds", seconds},
          {"nanoseconds_per_row",
           1e9 * seconds / static_cast<double>(result.shape.rows)}};
}

Json ArmToJson(const KernelCase& result, size_t arm) {
  const PairArm& known = kPairArms[arm];
  Json json = TimesToJson(result, arm, known.kind == ArmKind::kProbe);
  json["modelled_bytes"] = Bytes(result, arm);
  json["explicit_bytes"] =
      known.traffic.explicit_tensors * static_cast<double>(result.tensor_bytes);
  json["bytes_per_second"] = Bandwidth(result, arm);
  json["share_of_best_probe"] = ShareOfBest(result, arm);
  json["against_unfused"] = ToJson(result.times.Estimate(arm, 0));
  json["against_streaming_copy"] =
      ToJson(result.times.Estimate(arm, kStreamingCopy));
  AddComparison(result.times, arm, json);
  json["seconds"] = result.times.arms[arm].processes;
  return json;
}

// How many bytes it moves is not known.
Json OtherArmToJson(const KernelCase& result, size_t arm) {
  Json json = TimesToJson(result, arm, /*is_probe=*/false);
  json["against_unfused"] = ToJson(result.times.Estimate(arm, 0));
  AddComparison(result.times, arm, json);
  json["seconds"] = result.times.arms[arm].processes;
  return json;
}

Json NotAsModelledToJson(const KernelCase& result,
                         const MachineFacts& machine) {
  Json rows = Json::array();
  for (const ArmComparison& found : NotAsModelled(result, machine)) {
    Json& row = rows.emplace_back(Json{{"arm", found.arm}});
    row.update(ToJson(found));
  }
  return rows;
}

Json CaseToJson(const KernelCase& result, const MachineFacts& machine) {
  const Limit limit = Limiter(result, machine);
  Json arms = Json::array();
  for (size_t arm = 0; arm < kPairArmCount; ++arm)
    arms.push_back(ArmToJson(result, arm));
  for (const OtherArm& other : result.others)
    arms.push_back(OtherArmToJson(result, other.arm));
  return {{"recipe", result.recipe},
          {"type", TypeWord(result.setting.recipe.type)},
          {"rows", result.shape.rows},
          {"length", result.shape.length},
          {"threads", result.setting.threads},
          {"cache", CacheWord(result.setting.cache)},
          {"tensor_bytes", result.tensor_bytes},
          {"buffer_sets", result.buffer_sets},
          {"calls_per_epoch", result.times.calls},
          {"rounds", result.times.rounds()},
          {"clock", result.uses_processor_time() ? "processor" : "wall"},
          {"noise_floor", runtime::NoiseFloor(result.times.Floor())},
          {"limit", limit.kind},
          {"limiter", limit.text},
          {"not_as_modelled", NotAsModelledToJson(result, machine)},
          {"pinned_to_cores", result.cores},
          {"usage", ToJson(result.usage)},
          {"others", ToJson(result.others)},
          {"not_run", result.not_run},
          {"arms", std::move(arms)}};
}

}  // namespace

Json ToJson(const std::vector<KernelCase>& cases, const MachineFacts& machine) {
  Json rows = Json::array();
  for (const KernelCase& result : cases)
    rows.push_back(CaseToJson(result, machine));
  return {{"machine", ToJson(machine)},
          {"headline", Headline(TallyOf(cases))},
          {"cases", std::move(rows)}};
}

}  // namespace addnorm::tool
