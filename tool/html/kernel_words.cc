// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "tool/html/bench_words.h"
#include "tool/html/kernel_gains.h"

namespace addnorm::tool::html {
namespace {

// "the bandwidth of memory: f32 512×4096 cold, …"
SummaryPoint LimitPoint(const std::vector<KernelView>& cases) {
  Named<std::vector<std::string>> limits;
  for (const KernelView& result : cases)
    EntryOf(limits, result.limit).push_back(result.name());
  constexpr size_t kMost = 6;
  std::string text;
  for (const auto& [limit, names] : limits) {
    text += fmt::format("{}{} (", text.empty() ? "" : "; ", limit);
    for (size_t i = 0; i < std::min(kMost, names.size()); ++i)
      text += fmt::format("{}{}", i == 0 ? "" : ", ", names[i]);
    if (names.size() > kMost)
      text += fmt::format(", and {} more", names.size() - kMost);
    text += ")";
  }
  return {"What limits it", Capitalised(text) + "."};
}

// Those with enough rounds: times of others say nothing.
std::vector<KernelView> Judged(const std::vector<KernelView>& cases) {
  std::vector<KernelView> judged;
  std::copy_if(cases.begin(), cases.end(), std::back_inserter(judged),
               [](const KernelView& result) {
                 return result.comparison("fused").verdict !=
                        runtime::Verdict::kTooFewRounds;
               });
  return judged;
}

// How much of the largest ratio is the buffers'.
SummaryPoint BuffersPoint(const std::vector<KernelView>& cases) {
  const StoresRow& in_place = kStores[2];
  const auto ratio = [&](const KernelView& result, std::string_view arm) {
    return result.arm(arm).against_unfused.ratio;
  };
  const KernelView& best = *std::min_element(
      cases.begin(), cases.end(),
      [&](const KernelView& a, const KernelView& b) {
        return ratio(a, in_place.fused) < ratio(b, in_place.fused);
      });
  return {"Fusing or buffers",
          fmt::format(
              "Fused in place takes {:.2f} of the time of unfused with plain "
              "stores in {}; but unfused in place takes {:.2f} there, so only "
              "the rest is due to fusing. Compare within a kind of stores.",
              ratio(best, in_place.fused), best.name(),
              ratio(best, in_place.unfused))};
}

SummaryPoint NoisePoint(const std::vector<KernelView>& cases) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const KernelView& result : cases) {
    low = std::min(low, result.noise);
    high = std::max(high, result.noise);
  }
  return {"How sure",
          fmt::format("The same work timed against itself differs by {} (A/A, "
                      "the noise); a difference counts only where it is larger "
                      "and its 95 % interval lies on one side of 1.",
                      PercentRange(low, high))};
}

}  // namespace

std::string Capitalised(std::string text) {
  if (!text.empty()) text[0] = absl::ascii_toupper(text[0]);
  return text;
}

Summary Summarize(const std::string& headline,
                  const std::vector<KernelView>& cases) {
  Summary summary{.headline = headline, .points = GainPoints(cases)};
  if (summary.points.empty()) return summary;
  summary.points.push_back(LimitPoint(cases));
  const std::vector<KernelView> judged = Judged(cases);
  if (!judged.empty()) {
    summary.points.push_back(BuffersPoint(judged));
    summary.points.push_back(NoisePoint(judged));
  }
  summary.points.push_back(
      {"The names",
       "“f32 512×4096 cold” is the type, the rows and their length, and where "
       "tensors are before a call: warm, in the caches; cold, in memory; "
       "producer, the branch just written and the residual in memory. Stores: "
       "plain, to buffers of their own; streaming, past the caches; in place, "
       "over the operands."});
  summary.points.push_back(
      {"In a whole model",
       "This is the pair alone, a small share of a large model, whose matrix "
       "products take nearly all the time: “onnx-addnorm bench MODEL” says "
       "what is left of it there."});
  return summary;
}

}  // namespace addnorm::tool::html
