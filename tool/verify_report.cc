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

using Json = nlohmann::ordered_json;
using runtime::Comparison;

// Of a list, for people; JSON has all.
constexpr size_t kShown = 5;

Style StyleOf(Verdict verdict) {
  if (verdict == Verdict::kProven) return Style::kGood;
  return verdict == Verdict::kDifferent ? Style::kBad : Style::kNote;
}

std::string UlpsText(uint64_t ulps) {
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
                     size_t width) {
  std::string text;
  for (size_t i = 0; i < std::min(list.size(), kShown); ++i) {
    text += Paragraph(
        "    ", PlaceText(list[i]) + ": " + ir::Printable(list[i].text), width);
  }
  if (list.size() > kShown)
    text += fmt::format("    and {} more\n", list.size() - kShown);
  return text;
}

std::string StructureText(const Verification& done, size_t width) {
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
    text += ListText(done.structure.differences, width);
  }
  if (done.structure.swaps.empty()) return text;
  text += fmt::format(
      "  note       {} with swapped operands: equal but for payloads of NaN\n",
      Plural(static_cast<int64_t>(done.structure.swaps.size()), "node"));
  return text + ListText(done.structure.swaps, width);
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
      "1 round with only weights shared: {} of B compute {} words by "
      "themselves",
      Plural(apart.b_nodes, "node"), apart.words);
}

std::string RunText(const Verification& done, size_t width) {
  if (done.rounds.empty()) {
    return Paragraph("  run        ", "not compared: " + done.run_reason,
                     width);
  }
  const runtime::LockStepResult& first = done.rounds[0].result;
  std::string text = fmt::format(
      "  run        {} side by side, {} words compared; {} of B's own\n",
      Plural(static_cast<int64_t>(done.rounds.size()), "round"), done.words,
      Plural(first.b_nodes, "node"));
  if (!done.run_reason.empty())
    text += Paragraph("             ", done.run_reason, width);
  return text + Paragraph("             ", ApartText(done.apart), width);
}

std::string DifferenceText(const Verification& done, const VerifyNames& names,
                           size_t width) {
  const Comparison& found = done.difference;
  if (found.is_equal()) return "";
  const std::string mismatch =
      done.first.mismatch.empty() ? "" : " " + done.first.mismatch;
  std::string text =
      Paragraph("  first      ", done.first_place + mismatch, width);
  if (mismatch.empty()) {
    text +=
        fmt::format("             index {}: {}, expected {}\n",
                    done.first.first, done.first.found, done.first.expected);
  }
  text += fmt::format("             {} of {} words differ, by at most {}\n",
                      found.different, done.words, UlpsText(found.max_ulps));
  for (size_t i = 0; i < runtime::kUlpClasses; ++i) {
    if (found.ulps[i] == 0) continue;
    text += fmt::format("               {:>12} ULPs: {}\n",
                        runtime::UlpClassName(i), found.ulps[i]);
  }
  if (found.nan_payloads > 0)
    text += fmt::format("             {} NaNs with another payload\n",
                        found.nan_payloads);
  return text + fmt::format("  again      {}\n", names.command);
}

Json ToJson(const passes::StructureDifference& difference) {
  return {{"place_a", difference.place_a},
          {"place_b", difference.place_b},
          {"what", difference.text}};
}

Json ToJson(const std::vector<passes::StructureDifference>& list) {
  Json json = Json::array();
  for (const passes::StructureDifference& difference : list)
    json.push_back(ToJson(difference));
  return json;
}

Json ToJson(const Comparison& comparison) {
  Json json = {{"words", comparison.elements},
               {"different", comparison.different},
               {"nan_payloads", comparison.nan_payloads}};
  if (!comparison.mismatch.empty()) json["mismatch"] = comparison.mismatch;
  if (comparison.first < 0) return json;
  json["first_index"] = comparison.first;
  json["expected"] = comparison.expected;
  json["found"] = comparison.found;
  json["max_ulps"] = comparison.max_ulps;
  Json ulps = Json::object();
  for (size_t i = 0; i < runtime::kUlpClasses; ++i) {
    if (comparison.ulps[i] > 0)
      ulps[runtime::UlpClassName(i)] = comparison.ulps[i];
  }
  json["ulps"] = std::move(ulps);
  return json;
}

Json StructureJson(const Verification& done) {
  if (!done.structure_reason.empty())
    return {{"compared", false}, {"reason", done.structure_reason}};
  return {{"compared", true},
          {"equal", done.structure.is_equal()},
          {"differences", ToJson(done.structure.differences)},
          {"more", done.structure.has_more},
          {"swapped_operands", ToJson(done.structure.swaps)}};
}

Json KernelsJson(const Verification& done) {
  if (!done.kernels_reason.empty())
    return {{"compared", false}, {"reason", done.kernels_reason}};
  Json results = Json::array();
  for (const KernelResult& result : done.kernels.results) {
    Json json = {{"op", result.op},
                 {"rows", result.type},
                 {"has_kernel", result.has_kernel},
                 {"comparison", ToJson(result.comparison)}};
    if (!result.where.empty()) json["where"] = result.where;
    results.push_back(std::move(json));
  }
  return {{"compared", true},
          {"words", done.kernels.words},
          {"calls_left_out", done.kernels.calls_left_out},
          {"targets", done.kernels.targets},
          {"results", std::move(results)}};
}

Json RoundJson(const Round& round) {
  Json dims = Json::object();
  for (const ChosenDim& dim : round.dims) dims[dim.symbol] = dim.value;
  Json outputs = Json::array();
  for (const Comparison& output : round.result.outputs)
    outputs.push_back(ToJson(output));
  Json own = Json::array();
  for (const runtime::ValueComparison& value : round.result.own) {
    Json json = {{"value", value.value->name()},
                 {"expected_value", value.expected->name()},
                 {"are_twins", value.are_twins}};
    json.update(ToJson(value.comparison));
    own.push_back(std::move(json));
  }
  return {{"seed", round.seed},
          {"scale", round.scale},
          {"dims", std::move(dims)},
          {"nodes_a", round.result.a_nodes},
          {"nodes_b", round.result.b_nodes},
          {"outputs", std::move(outputs)},
          {"own_values", std::move(own)}};
}

Json ApartJson(const ApartRound& apart) {
  if (!apart.reason.empty())
    return {{"compared", false}, {"reason", apart.reason}};
  return {
      {"compared", true}, {"nodes_b", apart.b_nodes}, {"words", apart.words}};
}

Json RunJson(const Verification& done) {
  Json rounds = Json::array();
  for (const Round& round : done.rounds) rounds.push_back(RoundJson(round));
  Json json = {{"compared", !done.rounds.empty()},
               {"words", done.words},
               {"rounds", std::move(rounds)}};
  if (!done.rounds.empty()) json["only_weights_shared"] = ApartJson(done.apart);
  if (!done.run_reason.empty()) json["reason"] = done.run_reason;
  if (!done.first_place.empty()) {
    json["first_difference"] = {{"place", done.first_place}};
    json["first_difference"].update(ToJson(done.first));
  }
  return json;
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
  text += StructureText(verification, terminal.width);
  text += KernelsText(verification, terminal.width);
  text += RunText(verification, terminal.width);
  return text + DifferenceText(verification, names, terminal.width);
}

Json ToJson(const Verification& verification, const VerifyNames& names) {
  Json json = {{"verdict", Name(verification.verdict)}, {"a", names.a}};
  if (!names.b.empty()) json["b"] = names.b;
  json["structure"] = StructureJson(verification);
  json["kernels"] = KernelsJson(verification);
  json["run"] = RunJson(verification);
  json["command"] = names.command;
  return json;
}

}  // namespace addnorm::tool
