// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_model_report.h"

#include <utility>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "tool/bench_headline.h"
#include "tool/bench_other_report.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

using Json = nlohmann::ordered_json;
using runtime::Verdict;

// How much of the unfused run is in its sites.
double SiteShare(const ModelBench& bench) {
  const double whole = bench.whole.arms[kUnfusedModel].Median();
  return whole > 0 ? bench.parts.arms[kUnfusedModel].Median() / whole : 0;
}

std::string Dims(const ModelBench& bench) {
  std::string text;
  for (const ChosenDim& dim : bench.inputs.dims) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ",
                        ir::Printable(dim.symbol), dim.value);
  }
  return text;
}

// The model and others, where nothing can be fused.
std::string OtherTimesText(const ModelBench& bench, size_t width) {
  Table table("<>>");
  table.AddRow({"", "end to end", "/ unfused"});
  for (size_t arm = 0; arm < bench.whole.arms.size(); ++arm) {
    const ArmTimes& times = bench.whole.arms[arm];
    table.AddRow({ArmLabel(times.name), ShortSeconds(times.Median()),
                  arm == kUnfusedModel
                      ? ""
                      : RatioText(bench.whole.Estimate(arm, kUnfusedModel))});
  }
  return table.Render(width);
}

std::string TimesText(const ModelBench& bench, size_t width) {
  if (bench.sites == 0) return OtherTimesText(bench, width);
  Table table("<>>>>>");
  table.AddRow({"", "end to end", "/ unfused", "sites alone", "/ unfused",
                "peak memory"});
  for (size_t arm = 0; arm < bench.whole.arms.size(); ++arm) {
    const size_t peak =
        arm == kFusedModel ? bench.fused_peak_bytes : bench.unfused_peak_bytes;
    const auto ratio = [&](const BenchCase& times) {
      return arm == kUnfusedModel ? std::string()
                                  : RatioText(times.Estimate(arm, 0));
    };
    std::vector<std::string> row = {
        ArmLabel(bench.whole.arms[arm].name),
        ShortSeconds(bench.whole.arms[arm].Median()), ratio(bench.whole)};
    if (arm <= kFusedModel) {
      row.push_back(ShortSeconds(bench.parts.arms[arm].Median()));
      row.push_back(ratio(bench.parts));
      row.push_back(arm == kUnfusedModelAgain ? "" : FormatBytes(peak));
    }
    row.resize(6);
    table.AddRow(std::move(row));
  }
  return table.Render(width);
}

std::string ShareText(const ModelBench& bench) {
  return fmt::format(
      "the sites are {:.2g} % of the unfused run ({}); fusing gains at most "
      "that, and what the runtime spends around nodes that are gone",
      100 * SiteShare(bench), Plural(bench.sites, "site"));
}

std::string GainText(const BenchCase& times) {
  return "fused: " + InWords(times.Compare(kFusedModel));
}

Json CaseToJson(const char* what, const BenchCase& times) {
  Json arms = Json::array();
  for (size_t arm = 0; arm < times.arms.size(); ++arm) {
    Json& json =
        arms.emplace_back(Json{{"name", times.arms[arm].name},
                               {"median_seconds", times.arms[arm].Median()}});
    json["against_unfused"] = ToJson(times.Estimate(arm, kUnfusedModel));
    AddComparison(times, arm, json);
    json["seconds"] = times.arms[arm].processes;
  }
  return {{"what", what},
          {"rounds", times.rounds()},
          {"calls_per_epoch", times.calls},
          {"noise_floor", runtime::NoiseFloor(times.Floor())},
          {"arms", std::move(arms)}};
}

// Is fusing worth it, in one sentence.
std::string HeadlineOf(const ModelBench& bench) {
  constexpr const char* kNothing =
      "Nothing to fuse: no residual Add feeds an RMSNorm in this model";
  if (!bench.is_measured) {
    return fmt::format(
        "{}, so nothing was measured ('onnx-addnorm run --profile' says how "
        "long it takes).",
        kNothing);
  }
  if (bench.sites == 0)
    return fmt::format("{}, which was measured beside others.", kNothing);
  return Headline(bench.whole.Compare(kFusedModel));
}

}  // namespace

std::string CameFusedText(int64_t fused_before) {
  if (fused_before == 0) return "";
  return fmt::format(
      "the model came with {} fused already; 'unfused' runs them node by node, "
      "by the function that the model has for the op",
      Plural(fused_before, "site"));
}

std::string ToText(const ModelBench& bench, const MachineFacts& machine,
                   const Terminal& terminal) {
  const std::string name = ir::Printable(bench.name);
  const size_t width = terminal.width;
  if (!bench.is_measured)
    return Paragraph("", name + ": " + HeadlineOf(bench), width);
  const std::string dims = Dims(bench);
  std::string text = ToText(machine, width) + "\n" +
                     terminal.Paint(Style::kStrong, name) + "\n";
  text += Paragraph(
      "",
      fmt::format("{}, {} {}, {} of {}, {} time{}{}",
                  bench.sites == 0 ? "no site, so nothing to fuse"
                                   : Plural(bench.sites, "site"),
                  Plural(bench.threads, "thread"), CoresText(bench.cores),
                  Plural(static_cast<int64_t>(bench.whole.rounds()), "round"),
                  Plural(bench.whole.calls, "run"),
                  bench.uses_processor_time() ? "processor" : "wall",
                  dims.empty() ? "" : "; ", dims),
      width);
  text += TimesText(bench, width);
  const auto line = [&](std::string_view first, const std::string& words) {
    text += Paragraph(first, words, width);
  };
  line("noise       ", NoiseText(bench.whole.Floor()));
  if (bench.fused_before > 0)
    line("note        ", CameFusedText(bench.fused_before));
  if (bench.sites > 0) {
    line("outputs     ", bench.has_same_bits
                             ? "fused and unfused have the same bits"
                             : "fused and unfused DIFFER; see 'onnx-addnorm "
                               "verify'");
    line("sites       ", GainText(bench.parts));
    line("share       ", ShareText(bench));
    line("end to end  ", GainText(bench.whole));
  }
  text += ToText(bench.others, bench.not_run, bench.whole, width);
  line("machine     ", UsageText(bench.usage));
  return text;
}

Json ToJson(const ModelBench& bench, const MachineFacts& machine) {
  Json dims = Json::array();
  for (const ChosenDim& dim : bench.inputs.dims)
    dims.push_back({{"symbol", dim.symbol}, {"value", dim.value}});
  Json json{{"machine", ToJson(machine)},
            {"headline", HeadlineOf(bench)},
            {"model", bench.name},
            {"sites", bench.sites},
            {"sites_fused_before", bench.fused_before},
            {"threads", bench.threads},
            {"seed", bench.seed},
            {"dims", std::move(dims)},
            {"cases", Json::array()}};
  if (!bench.is_measured) return json;
  json["others"] = ToJson(bench.others);
  json["not_run"] = bench.not_run;
  json["clock"] = bench.uses_processor_time() ? "processor" : "wall";
  json["pinned_to_cores"] = bench.cores;
  json["usage"] = ToJson(bench.usage);
  json["unfused_peak_bytes"] = bench.unfused_peak_bytes;
  json["cases"].push_back(CaseToJson("end to end", bench.whole));
  if (bench.sites == 0) return json;
  json["has_same_bits"] = bench.has_same_bits;
  json["site_share"] = SiteShare(bench);
  json["fused_peak_bytes"] = bench.fused_peak_bytes;
  json["cases"].push_back(CaseToJson("sites", bench.parts));
  return json;
}

}  // namespace addnorm::tool
