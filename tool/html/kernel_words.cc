// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "tool/bench_headline.h"
#include "tool/html/bench_words.h"
#include "tool/report.h"

namespace addnorm::tool::html {
namespace {

using runtime::Verdict;

// One fused arm in one case.
struct Gain {
  const KernelView* result;
  const StoresRow* stores;
  const ArmComparison& comparison() const {
    return result->comparison(stores->fused);
  }
  double ratio() const { return comparison().estimate.ratio; }
};
using Gains = std::vector<Gain>;

Gains AllOf(const std::vector<KernelView>& cases) {
  Gains all;
  for (const KernelView& result : cases)
    for (const StoresRow& stores : kStores) all.push_back({&result, &stores});
  return all;
}

Gains Of(const Gains& all, Verdict verdict) {
  Gains found;
  std::copy_if(
      all.begin(), all.end(), std::back_inserter(found),
      [&](const Gain& c) { return c.comparison().verdict == verdict; });
  return found;
}

// "15 %", or "5.2 to 19 %".
std::string PercentRange(double low, double high) {
  const auto digits = [](double share) { return share < 0.1 ? 1 : 0; };
  const std::string from = fmt::format("{:.{}f}", 100 * low, digits(low));
  const std::string to = fmt::format("{:.{}f}", 100 * high, digits(high));
  return from == to ? to + " %" : from + " to " + to + " %";
}

// "f32 1×4096 cold (plain, in place); …", at most so many cases; the stores are
// left out where only streaming ones are meant.
std::string Names(const Gains& some) {
  constexpr size_t kMost = 8;
  std::vector<std::pair<const KernelView*, std::string>> cases;
  for (const Gain& c : some) {
    if (cases.empty() || cases.back().first != c.result)
      cases.push_back({c.result, std::string(c.stores->name)});
    else
      cases.back().second += fmt::format(", {}", c.stores->name);
  }
  const bool of_streaming =
      std::all_of(some.begin(), some.end(), [](const Gain& c) {
        return c.comparison().verdict == Verdict::kOfNoUse;
      });
  std::string text;
  for (size_t i = 0; i < std::min(cases.size(), kMost); ++i)
    text += fmt::format("{}{}{}", i == 0 ? "" : "; ", cases[i].first->name(),
                        of_streaming ? "" : " (" + cases[i].second + ")");
  if (cases.size() > kMost)
    text += fmt::format("; and {} more", cases.size() - kMost);
  return text;
}

VerdictTally Count(const Gains& all) {
  VerdictTally tally;
  for (const Gain& c : all) tally.Add(c.comparison().verdict);
  return tally;
}

SummaryPoint GainPoint(const Gains& all) {
  const Gains faster = Of(all, Verdict::kFaster);
  if (faster.empty())
    return {"Like for like",
            "Against unfused ops with the same kind of stores, fused was "
            "nowhere measurably faster."};
  const auto by_ratio = [](const Gain& a, const Gain& b) {
    return a.ratio() < b.ratio();
  };
  const auto [best, least] =
      std::minmax_element(faster.begin(), faster.end(), by_ratio);
  return {"Like for like",
          fmt::format("Against unfused ops with the same kind of stores, fused "
                      "takes {} less time in {} of {} comparisons; most in {} "
                      "({}).",
                      PercentRange(1 - least->ratio(), 1 - best->ratio()),
                      faster.size(), Count(all).told(), best->result->name(),
                      best->stores->name)};
}

// Comparisons of each shape, in the order of the sweep.
Named<Gains> ByShape(const Gains& all) {
  Named<Gains> shapes;
  for (const Gain& c : all) EntryOf(shapes, c.result->shape()).push_back(c);
  return shapes;
}

// "In most comparisons: 512×4096 (6 of 6); in some: …".
SummaryPoint ShapesPoint(const Gains& all) {
  struct Kind {
    const char* words;
    std::string shapes;
  };
  Kind kinds[] = {{"Faster in most comparisons", ""},
                  {"in some", ""},
                  {"in none", ""},
                  {"not told", ""}};
  for (const auto& [shape, gains] : ByShape(all)) {
    const VerdictTally tally = Count(gains);
    const size_t kind = tally.told() == 0                 ? 3
                        : tally.faster == 0               ? 2
                        : 2 * tally.faster > tally.told() ? 0
                                                          : 1;
    std::string& shapes = kinds[kind].shapes;
    shapes += (shapes.empty() ? "" : ", ") + shape;
    if (kind < 2)
      shapes += fmt::format(" ({} of {})", tally.faster, tally.told());
    if (tally.slower > 0)
      shapes += fmt::format(" (slower in {})", tally.slower);
  }
  std::string text;
  for (const Kind& kind : kinds) {
    if (!kind.shapes.empty())
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", kind.words,
                          kind.shapes);
  }
  return {"For which shapes", Capitalised(text) + "."};
}

// A list of cases, if there are any.
void AddList(const Gains& some, const char* lead, const char* words,
             std::vector<SummaryPoint>& points) {
  if (some.empty()) return;
  points.push_back({lead, fmt::format("{}: {}.", words, Names(some))});
}

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

SummaryPoint NoisePoint(const Gains& all) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Gain& c : all) {
    if (c.comparison().verdict == Verdict::kTooFewRounds) continue;
    low = std::min(low, c.result->noise);
    high = std::max(high, c.result->noise);
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
  const Gains all = AllOf(cases);
  Summary summary{.headline = headline, .points = {}};
  if (Count(all).told() == 0) return summary;
  summary.points.push_back(GainPoint(all));
  summary.points.push_back(ShapesPoint(all));
  AddList(Of(all, Verdict::kNoDifference), "No difference",
          "The same within 2 %", summary.points);
  AddList(Of(all, Verdict::kNothingMeasurable), "Not measurable",
          "What difference there may be is not seen through the noise",
          summary.points);
  AddList(Of(all, Verdict::kSlower), "Losses", "Fused is slower",
          summary.points);
  AddList(Of(all, Verdict::kOfNoUse), "Streaming",
          "Stores past the caches are of no use here, plain ones being faster",
          summary.points);
  AddList(Of(all, Verdict::kTooFewRounds), "Not told",
          "Too few rounds for a verdict (--seconds gives more time)",
          summary.points);
  summary.points.push_back(LimitPoint(cases));
  summary.points.push_back(BuffersPoint(cases));
  summary.points.push_back(NoisePoint(all));
  summary.points.push_back(
      {"In a whole model",
       "This is the pair alone, a small share of a large model, whose matrix "
       "products take nearly all the time: “onnx-addnorm bench MODEL” says "
       "what is left of it there."});
  return summary;
}

}  // namespace addnorm::tool::html
