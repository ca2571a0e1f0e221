// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "tool/html/bench_words.h"
#include "tool/report.h"

namespace addnorm::tool::html {
namespace {

using runtime::Verdict;

// One fused arm in one case.
struct Comparison {
  const KernelView* result;
  const StoresRow* stores;
  Outcome outcome;
  double ratio() const { return result->arm(stores->fused).same_stores.ratio; }
};
using Comparisons = std::vector<Comparison>;

Comparisons AllOf(const std::vector<KernelView>& cases) {
  Comparisons all;
  for (const KernelView& result : cases)
    for (const StoresRow& stores : kStores)
      all.push_back({&result, &stores, OutcomeOf(result, stores)});
  return all;
}

Comparisons Of(const Comparisons& all, Outcome outcome) {
  Comparisons found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found),
               [&](const Comparison& c) { return c.outcome == outcome; });
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
std::string Names(const Comparisons& some) {
  constexpr size_t kMost = 8;
  std::vector<std::pair<const KernelView*, std::string>> cases;
  for (const Comparison& c : some) {
    if (cases.empty() || cases.back().first != c.result)
      cases.push_back({c.result, std::string(c.stores->name)});
    else
      cases.back().second += fmt::format(", {}", c.stores->name);
  }
  const bool of_streaming = std::all_of(
      some.begin(), some.end(),
      [](const Comparison& c) { return c.outcome == Outcome::kNoUse; });
  std::string text;
  for (size_t i = 0; i < std::min(cases.size(), kMost); ++i)
    text += fmt::format("{}{}{}", i == 0 ? "" : "; ", cases[i].first->name(),
                        of_streaming ? "" : " (" + cases[i].second + ")");
  if (cases.size() > kMost)
    text += fmt::format("; and {} more", cases.size() - kMost);
  return text;
}

struct Tally {
  size_t faster, slower, wash, too_few, no_use;
  size_t told() const { return faster + slower + wash; }
};

Tally Count(const Comparisons& all) {
  const auto count = [&](Outcome outcome) { return Of(all, outcome).size(); };
  return {count(Outcome::kFaster), count(Outcome::kSlower),
          count(Outcome::kWash), count(Outcome::kTooFewRounds),
          count(Outcome::kNoUse)};
}

std::string Headline(const Tally& tally) {
  const std::string of = fmt::format("{} of {} comparisons like for like",
                                     tally.faster, tally.told());
  if (tally.told() == 0)
    return "No verdict: too few rounds. Give it more time (--seconds).";
  if (tally.faster == 0 && tally.slower == 0)
    return fmt::format(
        "No: fusing made no measurable difference in any of {} comparisons.",
        tally.told());
  if (tally.faster == tally.told())
    return fmt::format(
        "Yes: fused is faster in all {} comparisons like for "
        "like.",
        tally.told());
  if (tally.slower == 0)
    return fmt::format("{}: fused is faster in {}, and slower in none.",
                       3 * tally.faster > 2 * tally.told() ? "Mostly yes"
                       : 3 * tally.faster >= tally.told()  ? "Partly"
                                                           : "Rarely",
                       of);
  if (tally.faster > 2 * tally.slower)
    return fmt::format(
        "It depends on the shape: fused is faster in {}, slower "
        "in {}.",
        of, tally.slower);
  return fmt::format("Hardly: fused is faster in {}, but slower in {}.", of,
                     tally.slower);
}

SummaryPoint GainPoint(const Comparisons& all) {
  const Comparisons faster = Of(all, Outcome::kFaster);
  if (faster.empty())
    return {"Like for like",
            "Against unfused ops with the same kind of stores, fused was "
            "nowhere measurably faster."};
  const auto by_ratio = [](const Comparison& a, const Comparison& b) {
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
Named<Comparisons> ByShape(const Comparisons& all) {
  Named<Comparisons> shapes;
  for (const Comparison& c : all)
    EntryOf(shapes, c.result->shape()).push_back(c);
  return shapes;
}

// "In most comparisons: 512×4096 (6 of 6); in some: …".
SummaryPoint ShapesPoint(const Comparisons& all) {
  struct Kind {
    const char* words;
    std::string shapes;
  };
  Kind kinds[] = {{"Faster in most comparisons", ""},
                  {"in some", ""},
                  {"in none", ""},
                  {"not told", ""}};
  for (const auto& [shape, comparisons] : ByShape(all)) {
    const Tally tally = Count(comparisons);
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
void AddList(const Comparisons& some, const char* lead, const char* words,
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

SummaryPoint NoisePoint(const Comparisons& all) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Comparison& c : all) {
    if (c.outcome == Outcome::kTooFewRounds) continue;
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

Outcome OutcomeOf(const KernelView& result, const StoresRow& stores) {
  const ArmView& fused = result.arm(stores.fused);
  if (fused.verdict == Verdict::kTooFewRounds) return Outcome::kTooFewRounds;
  const bool streams = stores.name == "streaming";
  if (streams &&
      fused.seconds > result.arm("fused").seconds * (1 + result.noise))
    return Outcome::kNoUse;
  if (fused.verdict == Verdict::kFaster) return Outcome::kFaster;
  if (fused.verdict == Verdict::kSlower) return Outcome::kSlower;
  return Outcome::kWash;
}

std::string OutcomeText(const KernelView& result, const StoresRow& stores) {
  const double ratio = result.arm(stores.fused).same_stores.ratio;
  switch (OutcomeOf(result, stores)) {
    case Outcome::kFaster:
      return fmt::format("{} faster", Percent(1 - ratio));
    case Outcome::kSlower:
      return fmt::format("{} slower", Percent(ratio - 1));
    case Outcome::kTooFewRounds:
      return "too few";
    case Outcome::kNoUse:
      return "no use";
    case Outcome::kWash:
      break;
  }
  return "wash";
}

Summary Summarize(const std::vector<KernelView>& cases) {
  const Comparisons all = AllOf(cases);
  const Tally tally = Count(all);
  Summary summary{.headline = Headline(tally), .points = {}};
  if (tally.told() == 0) return summary;
  summary.points.push_back(GainPoint(all));
  summary.points.push_back(ShapesPoint(all));
  AddList(Of(all, Outcome::kWash), "Washes", "No measurable difference",
          summary.points);
  AddList(Of(all, Outcome::kSlower), "Losses", "Fused is slower",
          summary.points);
  AddList(Of(all, Outcome::kNoUse), "Streaming",
          "Stores past the caches are of no use here, plain ones being faster",
          summary.points);
  AddList(Of(all, Outcome::kTooFewRounds), "Not told",
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
