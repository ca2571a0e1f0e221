// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/verify_report.h"

#include <algorithm>
#include <limits>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/ir/printable.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

using runtime::Comparison;

// Of a list, for people; -v and JSON have all.
constexpr size_t kShown = 5;

size_t ShownOf(size_t count, const VerifyNames& names) {
  return names.is_verbose ? count : std::min(count, kShown);
}

std::string MoreText(size_t count, size_t shown) {
  return count > shown
             ? fmt::format("    and {} more (-v has all)\n", count - shown)
             : "";
}

Style StyleOf(Verdict verdict) {
  if (verdict == Verdict::kProven) return Style::kGood;
  return verdict == Verdict::kDifferent ? Style::kBad : Style::kNote;
}

std::string UlpsText(uint64_t ulps) {
  if (ulps == 1) return "1 ULP";
  return ulps == std::numeric_limits<uint64_t>::max()
             ? "more ULPs than can be counted"
             : fmt::format("{} ULPs", ulps);
}

std::string PlaceText(const passes::StructureDifference& difference) {
  if (difference.place_b.empty() || difference.place_a == difference.place_b)
    return ir::Printable(difference.place_a);
  if (difference.place_a.empty()) return ir::Printable(difference.place_b);
  return fmt::format("{} / {}", ir::Printable(difference.place_a),
                     ir::Printable(difference.place_b));
}

std::string ListText(const std::vector<passes::StructureDifference>& list,
                     const VerifyNames& names, size_t width) {
  std::string text;
  const size_t shown = ShownOf(list.size(), names);
  for (size_t i = 0; i < shown; ++i) {
    text += Paragraph(
        "    ", PlaceText(list[i]) + ": " + ir::Printable(list[i].text), width);
  }
  return text + MoreText(list.size(), shown);
}

std::string StructureText(const Verification& done, const VerifyNames& names,
                          size_t width) {
  if (!done.structure_reason.empty()) {
    return Paragraph("  structure  ", "not compared: " + done.structure_reason,
                     width);
  }
  std::string text;
  if (done.structure.is_equal()) {
    text = "  structure  the same nodes, attributes and constants\n";
  } else {
    text = fmt::format(
        "  structure  {}{}\n",
        Plural(static_cast<int64_t>(done.structure.differences.size()),
               "difference"),
        done.structure.has_more ? " and more" : "");
    text += ListText(done.structure.differences, names, width);
  }
  if (done.structure.swaps.empty()) return text;
  text += fmt::format(
      "  note       {} with swapped operands: equal but for payloads of NaN\n",
      Plural(static_cast<int64_t>(done.structure.swaps.size()), "node"));
  return text + ListText(done.structure.swaps, names, width);
}

std::string KernelsText(const Verification& done, size_t width) {
  if (!done.kernels_reason.empty())
    return Paragraph("  kernels    ", "not compared: " + done.kernels_reason,
                     width);
  std::string text = Paragraph(
      "  kernels    ",
      fmt::format(
          "{} against {}: {} words on {}, 1 and 4 threads, in place "
          "and not",
          Plural(static_cast<int64_t>(done.kernels.results.size()), "kernel"),
          done.kernels.results.size() == 1 ? "its body" : "their bodies",
          done.kernels.words, fmt::join(done.kernels.targets, ", ")),
      width);
  if (done.kernels.calls_left_out > 0) {
    text += fmt::format("    {} left out: types or row length not known\n",
                        Plural(done.kernels.calls_left_out, "call"));
  }
  for (const KernelResult& result : done.kernels.results) {
    if (!result.has_kernel)
      text += fmt::format("    {}: has no kernel, runs node by node\n",
                          ir::Printable(result.op));
    if (result.comparison.is_equal()) continue;
    text += fmt::format(
        "    {} ({}): {} of {} words differ, {}\n", ir::Printable(result.op),
        result.type, result.comparison.different, result.words, result.where);
  }
  return text;
}

std::string ApartText(const ApartRound& apart) {
  if (!apart.reason.empty())
    return fmt::format("no round with only weights shared: {}", apart.reason);
  return fmt::format(
      "1 round with only weights shared: {} of B {} {} words by {}",
      Plural(apart.b_nodes, "node"),
      apart.b_nodes == 1 ? "computes" : "compute", apart.difference.elements,
      apart.b_nodes == 1 ? "itself" : "themselves");
}

std::string RunText(const Verification& done, size_t width) {
  const std::string hint =
      done.run_hint.empty()
          ? ""
          : Paragraph("             ", "hint: " + done.run_hint, width);
  if (done.rounds.empty()) {
    return Paragraph("  run        ", "not compared: " + done.run_reason,
                     width) +
           hint;
  }
  const runtime::LockStepResult& first = done.rounds[0].result;
  std::string text = fmt::format(
      "  run        {} side by side, {} words compared; {} of B run "
      "separately\n",
      Plural(static_cast<int64_t>(done.rounds.size()), "round"),
      done.difference.elements, Plural(first.b_nodes, "node"));
  if (!done.run_reason.empty())
    text += Paragraph("             ", done.run_reason, width) + hint;
  return text + Paragraph("             ", ApartText(done.apart), width);
}

// "by at most 3 ULPs and 0.25"
std::string DistanceText(const Comparison& found) {
  return fmt::format("by at most {} and {:.6g}", UlpsText(found.max_ulps),
                     found.largest.value);
}

std::string PlaceText(const std::vector<int64_t>& at) {
  return fmt::format("[{}]", fmt::join(at, ","));
}

// The number of the round in which the maximum of an output is, as text.
template <typename MaximumOf>
std::string RoundText(const Verification& done, size_t output,
                      MaximumOf maximum_of) {
  if (done.rounds.size() == 1) return "";
  const auto largest =
      std::max_element(done.rounds.begin(), done.rounds.end(),
                       [&](const Round& a, const Round& b) {
                         return maximum_of(a.result.outputs[output]) <
                                maximum_of(b.result.outputs[output]);
                       });
  return fmt::format(" in round {}", largest - done.rounds.begin() + 1);
}

// "by at most 3 ULPs (at …) and 0.25 (at …)", or one place if it is the same.
std::string PlacesText(const Verification& done, size_t output,
                       const Comparison& sum) {
  const auto& ulps = sum.max_ulps_place;
  const auto& largest = sum.largest;
  const std::string at_ulps = fmt::format(
      "(at {}{}: {}, expected {})", PlaceText(ulps.at),
      RoundText(done, output, [](const auto& found) { return found.max_ulps; }),
      ulps.found, ulps.expected);
  const std::string at_largest = fmt::format(
      "(at {}{}: {}, expected {})", PlaceText(largest.at),
      RoundText(done, output,
                [](const auto& found) { return found.largest.value; }),
      largest.found, largest.expected);
  if (at_ulps == at_largest)
    return fmt::format("{} {}", DistanceText(sum), at_largest);
  return fmt::format("by at most {} {} and {:.6g} {}", UlpsText(sum.max_ulps),
                     at_ulps, largest.value, at_largest);
}

// All rounds of one output.
std::string OutputText(const Verification& done, size_t output, size_t width) {
  Comparison sum;
  for (const Round& round : done.rounds) sum.Add(round.result.outputs[output]);
  if (sum.is_equal()) return "";
  std::string text = sum.mismatch;
  if (text.empty()) {
    text = fmt::format("{} of {} words differ", sum.different, sum.elements);
    if (sum.nan_payloads > 0)
      text += fmt::format(", {} NaNs have another payload", sum.nan_payloads);
  }
  if (sum.different > 0) text += ", " + PlacesText(done, output, sum);
  return Paragraph(
      "    ",
      fmt::format("'{}': {}", ir::Printable(done.output_names[output]), text),
      width);
}

std::string OutputsText(const Verification& done, const VerifyNames& names,
                        size_t width) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < done.output_names.size(); ++i) {
    std::string text = OutputText(done, i, width);
    if (!text.empty()) texts.push_back(std::move(text));
  }
  std::string text =
      fmt::format("  outputs    {} of {} differ{}\n", texts.size(),
                  done.output_names.size(), texts.size() == 1 ? "s" : "");
  const size_t shown = ShownOf(texts.size(), names);
  for (size_t i = 0; i < shown; ++i) text += texts[i];
  return text + MoreText(texts.size(), shown);
}

std::string UlpClassesText(const Comparison& found) {
  std::string text;
  for (size_t i = 0; i < runtime::kUlpClasses; ++i) {
    if (found.ulps[i] == 0) continue;
    text +=
        fmt::format("               {:>12} ULP{}: {}\n",
                    runtime::UlpClassName(i), i == 0 ? "" : "s", found.ulps[i]);
  }
  return text;
}

// How many words differ of those that a set of runs compared.
std::string CountText(const char* lead, const Comparison& found,
                      const char* runs, size_t width) {
  std::string text =
      fmt::format("{} of {} words differ", found.different, found.elements);
  if (found.different > 0) text += ", " + DistanceText(found);
  if (found.nan_payloads > 0)
    text += fmt::format(", {} with another payload",
                        Plural(found.nan_payloads, "NaN"));
  return Paragraph(lead, fmt::format("{}: {}", runs, text), width);
}

std::string DifferenceText(const Verification& done, const VerifyNames& names,
                           size_t width) {
  if (done.is_equal_on_runs()) return "";
  std::string text =
      CountText("  differ     ", done.difference, "side by side", width);
  if (names.shows_ulps || names.is_verbose)
    text += UlpClassesText(done.difference);
  if (done.apart.reason.empty())
    text += CountText("             ", done.apart.difference,
                      "only weights shared", width);
  const std::string mismatch =
      done.first.mismatch.empty() ? "" : " " + done.first.mismatch;
  text += Paragraph("  first      ", done.first_place + mismatch, width);
  if (mismatch.empty()) {
    text += fmt::format("             {}: {}, expected {}\n",
                        PlaceText(done.first.first_at), done.first.found,
                        done.first.expected);
  }
  text += OutputsText(done, names, width);
  return text + fmt::format("  again      {}\n", names.command);
}

}  // namespace

std::string ToText(const Verification& verification, const VerifyNames& names,
                   const Terminal& terminal) {
  std::string text = fmt::format(
      "{}: {}\n",
      terminal.Paint(StyleOf(verification.verdict), Name(verification.verdict)),
      names.b.empty() ? fmt::format("{} against its own inlined form",
                                    ir::Printable(names.a))
                      : fmt::format("{} against {}", ir::Printable(names.b),
                                    ir::Printable(names.a)));
  text += StructureText(verification, names, terminal.width);
  text += KernelsText(verification, terminal.width);
  text += RunText(verification, terminal.width);
  return text + DifferenceText(verification, names, terminal.width);
}

}  // namespace addnorm::tool
