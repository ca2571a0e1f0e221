// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "fmt/format.h"
#include "tool/bench_model_report.h"
#include "tool/bench_result.h"
#include "tool/html/bench_words.h"
#include "tool/report.h"

namespace addnorm::tool::html {
namespace {

using runtime::Verdict;

std::string Words(const PartView& part) {
  return InWords(part.arm("fused").against_unfused, part.verdict);
}

std::string Headline(const ModelView& model) {
  const std::string words = Words(model.parts[0]);
  switch (model.parts[0].verdict) {
    case Verdict::kFaster:
      return fmt::format("Yes: end to end, the fused model is {}.", words);
    case Verdict::kSlower:
      return fmt::format("No: end to end, the fused model is {}.", words);
    case Verdict::kTooFewRounds:
      return "No verdict: too few rounds. Give it more time (--seconds).";
    default:
      return fmt::format("A wash: end to end, {}.", words);
  }
}

SummaryPoint MemoryPoint(const ModelView& model) {
  const auto bytes = [](double count) {
    return FormatBytes(static_cast<uint64_t>(count));
  };
  const std::string text =
      model.unfused_peak == model.fused_peak
          ? fmt::format(
                "The same, {} at the peak, without weights and inputs: "
                "unfused nodes take over buffers as well.",
                bytes(model.unfused_peak))
          : fmt::format(
                "{} at the peak unfused, {} fused, without weights and "
                "inputs.",
                bytes(model.unfused_peak), bytes(model.fused_peak));
  return {"Memory of values", text};
}

}  // namespace

Summary Summarize(const ModelView& model) {
  if (model.sites == 0)
    return {fmt::format("Nothing to fuse: no residual Add feeds an RMSNorm in "
                        "this model, {}.",
                        model.parts.empty() ? "so nothing was measured"
                                            : "which was measured beside "
                                              "others"),
            {}};
  const PartView &whole = model.parts[0], &sites = model.parts[1];
  Summary summary{.headline = Headline(model), .points = {}};
  auto& points = summary.points;
  points.push_back(
      {"The sites alone",
       fmt::format("In {} (a residual Add and its RMSNorm each), fused: {}.",
                   Plural(model.sites, "site"), Words(sites))});
  points.push_back(
      {"What limits it",
       fmt::format("The sites take {:.2g} % of the unfused run. Fusing cannot "
                   "gain more than that, and what the runtime spends between "
                   "fewer nodes.",
                   100 * model.site_share)});
  points.push_back(
      {"Outputs",
       model.has_same_bits
           ? "Fused and unfused give the same bits."
           : "Fused and unfused DIFFER: see “onnx-addnorm verify”."});
  if (model.fused_before > 0)
    points.push_back(
        {"Note", Capitalised(CameFusedText(model.fused_before)) + "."});
  points.push_back(MemoryPoint(model));
  if (whole.verdict == Verdict::kTooFewRounds) {
    points.push_back(
        {"How sure", fmt::format("Not at all: {} make no interval.",
                                 Plural(whole.rounds, "round"))});
    return summary;
  }
  points.push_back(
      {"How sure",
       fmt::format("Unfused timed against itself differs by {:.1f} % (A/A, the "
                   "noise); a difference counts only where it is larger and "
                   "its 95 % interval lies on one side of 1. {}.",
                   100 * whole.noise, Plural(whole.rounds, "round"))});
  return summary;
}

}  // namespace addnorm::tool::html
