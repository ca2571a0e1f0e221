// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/html/kernel_gains.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/format.h"
#include "tool/bench_headline.h"

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

struct VerdictList {
  Verdict verdict;
  const char* lead;
  const char* words;
};
constexpr VerdictList kLists[] = {
    {Verdict::kNoDifference, "No difference", "The same within 2 %"},
    {Verdict::kNothingMeasurable, "Not measurable",
     "What difference there may be is not seen through the noise"},
    {Verdict::kSlower, "Losses", "Fused is slower"},
    {Verdict::kOfNoUse, "Streaming",
     "Stores past the caches are of no use here, plain ones being faster"},
    {Verdict::kTooFewRounds, "Not told",
     "Too few rounds for a verdict (--seconds gives more time)"}};

}  // namespace

std::string PercentRange(double low, double high) {
  const auto digits = [](double share) { return share < 0.0995 ? 1 : 0; };
  const std::string from = fmt::format("{:.{}f}", 100 * low, digits(low));
  const std::string to = fmt::format("{:.{}f}", 100 * high, digits(high));
  return from == to ? to + " %" : from + " to " + to + " %";
}

std::vector<SummaryPoint> GainPoints(const std::vector<KernelView>& cases) {
  const Gains all = AllOf(cases);
  if (Count(all).told() == 0) return {};
  std::vector<SummaryPoint> points = {GainPoint(all), ShapesPoint(all)};
  for (const VerdictList& list : kLists) {
    const Gains some = Of(all, list.verdict);
    if (some.empty()) continue;
    points.push_back(
        {list.lead, fmt::format("{}: {}.", list.words, Names(some))});
  }
  return points;
}

}  // namespace addnorm::tool::html
