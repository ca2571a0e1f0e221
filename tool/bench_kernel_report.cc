// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_kernel_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "runtime/tensor.h"
#include "tool/bench_headline.h"
#include "tool/bench_other_report.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

using Json = nlohmann::ordered_json;
using runtime::ArmKind;
using runtime::CacheState;
using runtime::kPairArmCount;
using runtime::kPairArms;
using runtime::PairArm;
using runtime::PairedEstimate;
using runtime::Verdict;

// Places in kPairArms.
constexpr size_t kPlain = 4, kStreaming = 5, kInPlace = 6;
constexpr size_t kCopy = 8, kStreamingCopy = 9;

struct FusedArm {
  std::string_view stores;
  size_t arm;
};
constexpr FusedArm kFusedArms[] = {{"plain stores", kPlain},
                                   {"streaming", kStreaming},
                                   {"in place", kInPlace}};

// What the arm moves by the model, read for ownership included.
double Bytes(const KernelCase& result, size_t arm) {
  return kPairArms[arm].traffic.tensors *
         static_cast<double>(result.tensor_bytes);
}

double Bandwidth(const KernelCase& result, size_t arm) {
  const double seconds = result.times.arms[arm].Median();
  return seconds > 0 ? Bytes(result, arm) / seconds : 0;
}

double BestProbe(const KernelCase& result) {
  double best = 0;
  for (size_t arm = 0; arm < kPairArmCount; ++arm) {
    if (kPairArms[arm].kind == ArmKind::kProbe)
      best = std::max(best, Bandwidth(result, arm));
  }
  return best;
}

double ShareOfBest(const KernelCase& result, size_t arm) {
  const double best = BestProbe(result);
  return best > 0 ? Bandwidth(result, arm) / best : 0;
}

// The best that fusion does, by share of the bandwidth.
double BestFusedShare(const KernelCase& result) {
  return std::max({ShareOfBest(result, kPlain), ShareOfBest(result, kStreaming),
                   ShareOfBest(result, kInPlace)});
}

bool IsHalf(const KernelCase& result) {
  return runtime::ElementSize(result.setting.recipe.type) == 2;
}

// ---- in words

// Shares of the best probe from which memory is the limit, or nearly so.
constexpr double kLimited = 0.8, kPartlyLimited = 0.6;

// With more than this, shares are guesses.
constexpr double kMostNoise = 0.25;

// What holds the fused op up: the same words for all cases alike, and a
// sentence about this one.
struct Limit {
  std::string kind;
  std::string text;
};

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
  const std::string percent = Percent(share);
  const auto working_set = static_cast<int64_t>(4 * result.tensor_bytes);
  if (result.setting.cache == CacheState::kWarm && working_set <= machine.l2)
    return {
        "arithmetic and the cost of a call",
        fmt::format("arithmetic and the cost of a call: {} are in the "
                    "second-level cache, and bandwidth is no limit there "
                    "({} of the best probe)",
                    FormatBytes(static_cast<uint64_t>(working_set)), percent)};
  const bool fits = result.setting.cache == CacheState::kWarm &&
                    working_set <= machine.last_level_cache;
  const std::string where = fmt::format(
      "the bandwidth of {}", fits ? "the last-level cache" : "memory");
  if (share >= kLimited)
    return {where,
            fmt::format("{}: fused, {} of the best probe", where, percent)};
  if (share >= kPartlyLimited)
    return {"mostly " + where, fmt::format("mostly {}: fused, {} of the best "
                                           "probe",
                                           where, percent)};
  const char* other = IsHalf(result)
                          ? "conversions to float and back, and the arithmetic"
                          : "the arithmetic of the norm";
  return {other, fmt::format("not bandwidth (fused, {} of the best probe), but "
                             "{}",
                             percent, other)};
}

// Whether plain stores read what they overwrite, as the model has it.
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

// What is slower though it moves less, where memory is what counts.
std::vector<ArmComparison> NotAsModelled(const KernelCase& result,
                                         const MachineFacts& machine) {
  if (!IsOutsideOfCaches(result, machine)) return {};
  return AgainstModel(result);
}

std::string Title(const KernelCase& result) {
  std::string title = fmt::format(
      "{} {}x{}, {}, {}, {} caches", TypeWord(result.setting.recipe.type),
      result.shape.rows, result.shape.length, result.recipe,
      Plural(result.setting.threads, "thread"),
      result.setting.cache == CacheState::kProducer
          ? "producer's"
          : CacheWord(result.setting.cache));
  return title;
}

std::string CaseFacts(const KernelCase& result) {
  std::string text =
      fmt::format("{} of {}, {} time; a tensor has {}",
                  Plural(static_cast<int64_t>(result.times.rounds()), "round"),
                  Plural(result.times.calls, "call"),
                  result.uses_processor_time() ? "processor" : "wall",
                  FormatBytes(result.tensor_bytes));
  text += "; " + CoresText(result.cores);
  if (result.buffer_sets > 1) {
    text +=
        fmt::format(", {} sets of buffers in turn: {}", result.buffer_sets,
                    FormatBytes(4 * result.tensor_bytes * result.buffer_sets));
  }
  return text;
}

// ---- text

std::vector<std::string> ArmRow(const KernelCase& result, size_t arm) {
  const PairArm& known = kPairArms[arm];
  const ArmTimes& times = result.times.arms[arm];
  std::vector<std::string> row = {
      std::string(known.name), ShortSeconds(times.Median()),
      fmt::format("{:.1f}", Bandwidth(result, arm) / 1e9),
      Percent(ShareOfBest(result, arm))};
  const bool is_probe = known.kind == ArmKind::kProbe;
  row.push_back(is_probe
                    ? ""
                    : fmt::format("{:.2f}", known.traffic.tensors /
                                                kPairArms[0].traffic.tensors));
  row.push_back(
      is_probe || arm == 0 ? "" : RatioText(result.times.Estimate(arm, 0)));
  row.push_back(known.kind == ArmKind::kFused
                    ? RatioText(result.times.Estimate(arm, known.base))
                    : "");
  return row;
}

// What cannot be done with fewer bytes, nor by an op that does anything.
std::string CopyText(const KernelCase& result) {
  const auto ratio = [&](size_t arm) {
    return RatioText(result.times.Estimate(arm, kStreamingCopy));
  };
  return fmt::format(
      "fused takes {} times a streaming copy of as many bytes, streaming {}, "
      "in place {}",
      ratio(kPlain), ratio(kStreaming), ratio(kInPlace));
}

std::string CaseText(const KernelCase& result, const MachineFacts& machine,
                     const Terminal& terminal) {
  Table table("<>>>>>>");
  table.AddRow({"", "time", "GB/s", "of best", "model", "/ unfused",
                "/ unfused, same stores"});
  for (size_t arm = 0; arm < kPairArmCount; ++arm)
    table.AddRow(ArmRow(result, arm));
  for (const OtherArm& other : result.others)
    table.AddRow(OtherRow(other, result.times));
  std::string text = terminal.Paint(Style::kStrong, Title(result)) + "\n" +
                     Paragraph("", CaseFacts(result), terminal.width) +
                     table.Render(terminal.width);
  const auto line = [&](std::string_view first, const std::string& words) {
    if (!words.empty()) text += Paragraph(first, words, terminal.width);
  };
  line("noise       ", NoiseText(result.times.Floor()));
  line("limit       ", Limiter(result, machine).text);
  line("copy        ", CopyText(result));
  if (result.setting.cache != CacheState::kWarm)
    line("stores read ", OwnershipText(result));
  for (const ArmComparison& found : NotAsModelled(result, machine)) {
    line("not as modelled: ", fmt::format("{} is slower than {}: {}", found.arm,
                                          found.base, InWords(found)));
  }
  std::string_view first = "fusing      ";
  for (const auto& [stores, arm] : kFusedArms) {
    line(first,
         fmt::format("{}: {}", stores, InWords(result.times.Compare(arm))));
    first = "            ";
  }
  return text +
         ToText(result.others, result.not_run, result.times, terminal.width);
}

VerdictTally Count(const std::vector<KernelCase>& cases, size_t arm) {
  VerdictTally tally;
  for (const KernelCase& result : cases)
    tally.Add(result.times.Compare(arm).verdict);
  return tally;
}

// Of all stores.
VerdictTally Count(const std::vector<KernelCase>& cases) {
  VerdictTally tally;
  for (const KernelCase& result : cases)
    for (const auto& [stores, arm] : kFusedArms)
      tally.Add(result.times.Compare(arm).verdict);
  return tally;
}

std::string TallyText(std::string_view stores, const VerdictTally& tally) {
  std::string text = fmt::format(
      "{}: faster in {} of {}, slower in {}, no measurable gain in {}", stores,
      tally.faster, tally.all(), tally.slower, tally.none);
  if (tally.no_use > 0) {
    text += fmt::format(", of no use in {} (plain stores are faster)",
                        tally.no_use);
  }
  if (tally.too_few > 0) {
    text += fmt::format(", no verdict in {} (too few rounds: --seconds)",
                        tally.too_few);
  }
  return text;
}

MachineUsage Usage(const std::vector<KernelCase>& cases) {
  std::vector<MachineUsage> usages;
  for (const KernelCase& result : cases) usages.push_back(result.usage);
  return Together(usages);
}

std::string SummaryText(const std::vector<KernelCase>& cases, size_t width) {
  std::string text = "summary: fused against unfused\n";
  text += Paragraph("  ", Headline(Count(cases)), width);
  for (const auto& [stores, arm] : kFusedArms)
    text += Paragraph("  ", TallyText(stores, Count(cases, arm)), width);
  text += Paragraph("  ", UsageText(Usage(cases)), width);
  return text +
         Paragraph(
             "  ",
             "Compare within a kind of stores: the rest of a gain is the "
             "buffers', and unfused ops can have that too. This is the "
             "pair alone; 'bench MODEL' says what it is in a whole model.",
             width);
}

// ---- JSON

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

std::string MachineText(const MachineFacts& machine, size_t width) {
  const auto size = [](int64_t bytes) {
    return bytes == 0 ? std::string("?")
                      : FormatBytes(static_cast<uint64_t>(bytes));
  };
  return Paragraph(
             "",
             fmt::format(
                 "{}, {}, caches {} / {} / {}, memory {}, {}, governor {}, "
                 "load {:.1f}{}, {}",
                 machine.cpu, Plural(machine.cores, "core"), size(machine.l1),
                 size(machine.l2), size(machine.last_level_cache),
                 size(machine.memory), machine.simd, machine.governor,
                 machine.load,
                 machine.ort.empty() ? "" : ", ONNX Runtime " + machine.ort,
                 machine.date),
             width) +
         Paragraph("", fmt::format("{}, {}", machine.compiler, machine.flags),
                   width) +
         Paragraph("$ ", ir::Printable(machine.command), width);
}

std::string ToText(const std::vector<KernelCase>& cases,
                   const MachineFacts& machine, const Terminal& terminal) {
  std::string text = MachineText(machine, terminal.width) + "\n";
  for (const KernelCase& result : cases)
    text += CaseText(result, machine, terminal) + "\n";
  return text + SummaryText(cases, terminal.width);
}

Json ToJson(const std::vector<KernelCase>& cases, const MachineFacts& machine) {
  Json rows = Json::array();
  for (const KernelCase& result : cases)
    rows.push_back(CaseToJson(result, machine));
  return {{"machine", ToJson(machine)},
          {"headline", Headline(Count(cases))},
          {"cases", std::move(rows)}};
}

}  // namespace addnorm::tool
