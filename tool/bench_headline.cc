// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_headline.h"

#include "fmt/format.h"

namespace addnorm::tool {
namespace {

constexpr const char* kTooFew =
    "No verdict: too few rounds. Give it more time (--seconds).";

}  // namespace

using runtime::Verdict;

void VerdictTally::Add(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
      ++faster;
      break;
    case Verdict::kSlower:
      ++slower;
      break;
    case Verdict::kNoDifference:
    case Verdict::kNothingMeasurable:
      ++none;
      break;
    case Verdict::kOfNoUse:
      ++no_use;
      break;
    case Verdict::kTooFewRounds:
      ++too_few;
      break;
  }
}

std::string Headline(const VerdictTally& tally) {
  const std::string of = fmt::format("{} of {} comparisons like for like",
                                     tally.faster, tally.told());
  if (tally.told() <= tally.too_few) return kTooFew;
  if (tally.faster == 0 && tally.slower == 0)
    return fmt::format(
        "A wash: no measurable difference in any of {} comparisons.",
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

std::string Headline(const ArmComparison& whole) {
  const std::string words = InWords(whole);
  switch (whole.verdict) {
    case Verdict::kFaster:
      return fmt::format("Yes: end to end, the fused model is {}.", words);
    case Verdict::kSlower:
      return fmt::format("No: end to end, the fused model is {}.", words);
    case Verdict::kTooFewRounds:
      return kTooFew;
    default:
      return fmt::format("A wash: end to end, {}.", words);
  }
}

}  // namespace addnorm::tool
