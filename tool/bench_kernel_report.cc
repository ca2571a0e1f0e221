// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_kernel_report.h"

#include <utility>

#include "fmt/format.h"
#include "runtime/pair_arms.h"
#include "tool/bench_other_report.h"
#include "tool/bench_traffic.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

using runtime::ArmKind;
using runtime::CacheState;
using runtime::kPairArmCount;
using runtime::kPairArms;
using runtime::PairArm;

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
  text += Paragraph("  ", Headline(TallyOf(cases)), width);
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

}  // namespace

VerdictTally TallyOf(const std::vector<KernelCase>& cases) {
  VerdictTally tally;
  for (const KernelCase& result : cases)
    for (const auto& [stores, arm] : kFusedArms)
      tally.Add(result.times.Compare(arm).verdict);
  return tally;
}

std::string ToText(const std::vector<KernelCase>& cases,
                   const MachineFacts& machine, const Terminal& terminal) {
  std::string text = ToText(machine, terminal.width) + "\n";
  for (const KernelCase& result : cases)
    text += CaseText(result, machine, terminal) + "\n";
  return text + SummaryText(cases, terminal.width);
}

}  // namespace addnorm::tool
