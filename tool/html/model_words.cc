// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "fmt/format.h"
#include "tool/bench_model_report.h"
#include "tool/bench_result.h"
#include "tool/html/bench_words.h"
#include "tool/report.h"

namespace addnorm::tool::html {
namespace {

SummaryPoint InputsPoint(const ModelView& model) {
  const std::string threads = Plural(model.threads, "thread");
  return {
      "For which inputs",
      model.dims.empty()
          ? fmt::format("Of the model’s own shapes, which are fixed, on {}.",
                        threads)
          : fmt::format("{}, on {}. Other sizes have other shares: --dim "
                        "NAME=N measures them.",
                        model.dims, threads)};
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
  if (model.parts.empty()) return {model.headline, {}};
  if (model.sites == 0) return {model.headline, {InputsPoint(model)}};
  const PartView &whole = model.parts[0], &sites = model.parts[1];
  Summary summary{.headline = model.headline, .points = {}};
  auto& points = summary.points;
  points.push_back(
      {"The sites alone",
       fmt::format("In {} (a residual Add and its RMSNorm each), fused: {}.",
                   Plural(model.sites, "site"), InWords(sites.fused()))});
  points.push_back(InputsPoint(model));
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
  if (whole.fused().verdict == runtime::Verdict::kTooFewRounds) {
    points.push_back(
        {"How sure", fmt::format("Not at all: {} make no interval.",
                                 Plural(whole.rounds, "round"))});
    return summary;
  }
  points.push_back(
      {"How sure",
       fmt::format("Unfused timed against itself differs by {:.1f} % (A/A, the "
                   "noise); a difference counts only where it is larger and "
                   "its 95 % interval lies on one side of 1 ({}).",
                   100 * whole.noise, Plural(whole.rounds, "round"))});
  return summary;
}

}  // namespace addnorm::tool::html
