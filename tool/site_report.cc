// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/site_report.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

using passes::Candidate;
using passes::FusionReport;
using passes::Verdict;
using Json = nlohmann::ordered_json;

constexpr int kReasonsInSummary = 5;

std::map<std::string, int> CountBy(const FusionReport& report, Verdict verdict,
                                   std::string Candidate::*key) {
  std::map<std::string, int> counts;
  for (const Candidate& candidate : report.candidates) {
    if (candidate.verdict == verdict) ++counts[candidate.*key];
  }
  counts.erase("");
  return counts;
}

// " (reciprocal 20, one_div_sqrt 4)": the most frequent first.
std::string Breakdown(const std::map<std::string, int>& counts) {
  std::vector<std::pair<std::string, int>> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second > b.second;
  });
  std::string text;
  for (const auto& [name, count] : rows) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                        ir::Printable(name), count);
  }
  return text.empty() ? "" : fmt::format(" ({})", text);
}

std::string Place(const Candidate& candidate) {
  if (candidate.graph.empty()) return ir::Printable(candidate.node);
  return fmt::format("{} in {}", ir::Printable(candidate.node),
                     ir::Printable(candidate.graph));
}

// Candidates that fail for one reason, for example in every layer.
struct ReasonGroup {
  const Candidate* first;
  int count;
};

// The text without quoted names, which differ from layer to layer.
std::string WithoutNames(std::string_view text) {
  std::string out;
  bool is_name = false;
  for (const char c : text) {
    if (c == '\'') is_name = !is_name;
    if (!is_name) out += c;
  }
  return out;
}

// The most frequent reason first, else in the order of the report.
std::vector<ReasonGroup> GroupByReason(const FusionReport& report) {
  std::vector<ReasonGroup> groups;
  std::map<std::string, size_t> index;
  for (const Candidate& candidate : report.candidates) {
    if (candidate.verdict != Verdict::kNotFused) continue;
    const auto [known, is_new] =
        index.emplace(WithoutNames(candidate.reason), groups.size());
    if (is_new) groups.push_back({.first = &candidate, .count = 0});
    ++groups[known->second].count;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const ReasonGroup& a, const ReasonGroup& b) {
                     return a.count > b.count;
                   });
  return groups;
}

// "60 x exponent is 3, expected 2 (first: Add 's0')"
std::string ToText(const ReasonGroup& group) {
  const std::string reason = ir::Printable(group.first->reason);
  const std::string place = Place(*group.first);
  return group.count == 1
             ? fmt::format("{}: {}", place, reason)
             : fmt::format("{} x {} (first: {})", group.count, reason, place);
}

std::string FrequentReasons(const FusionReport& report, size_t width) {
  std::string text;
  int shown = 0;
  int left_out = 0;
  for (const ReasonGroup& group : GroupByReason(report)) {
    if (++shown <= kReasonsInSummary) {
      text += Paragraph("  ", ToText(group), width);
    } else {
      left_out += group.count;
    }
  }
  if (left_out > 0) {
    text += fmt::format("  … and {} more (--explain)\n", left_out);
  }
  return text;
}

Style StyleOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFused:
      return Style::kGood;
    case Verdict::kNotFused:
      return Style::kBad;
    default:
      return Style::kNote;
  }
}

std::string Explanation(const Candidate& candidate) {
  if (!candidate.reason.empty()) return ir::Printable(candidate.reason);
  return candidate.op.empty()
             ? ""
             : fmt::format("as {}", ir::Printable(candidate.op));
}

Json ToJson(const Candidate& candidate) {
  Json row{{"verdict", VerdictName(candidate.verdict)}};
  const std::pair<const char*, const std::string&> fields[] = {
      {"graph", candidate.graph},     {"node", candidate.node},
      {"sum", candidate.sum},         {"y", candidate.y},
      {"variant", candidate.variant}, {"op", candidate.op},
      {"reason", candidate.reason},   {"hint", candidate.hint}};
  for (const auto& [key, value] : fields) {
    if (!value.empty()) row[key] = value;
  }
  return row;
}

std::string LayerNorms(const FusionReport& report) {
  if (report.layer_norms == 0) return "";
  return fmt::format("{} (the mean is subtracted): out of scope, left alone\n",
                     Plural(report.layer_norms, "LayerNorm"));
}

}  // namespace

std::string SummarizeSites(const FusionReport& report, std::string_view verb,
                           bool with_reasons, const Terminal& terminal) {
  const int fused = report.Count(Verdict::kFused);
  const int not_fused = report.Count(Verdict::kNotFused);
  std::string text;
  if (fused + not_fused == 0) {
    text = "no sites: no residual Add feeds an RMSNorm that is recognised\n";
  } else {
    const std::string count = fmt::format("{} {} of {}", verb, fused,
                                          Plural(fused + not_fused, "site"));
    text = terminal.Paint(fused > 0 ? Style::kGood : Style::kStrong, count) +
           Breakdown(CountBy(report, Verdict::kFused, &Candidate::variant)) +
           "\n";
  }
  if (with_reasons && not_fused > 0) {
    text += "not fused:\n" + FrequentReasons(report, terminal.width);
  }
  if (const int already = report.Count(Verdict::kAlreadyFused); already > 0) {
    text += fmt::format(
        "already fused: {}{}\n", already,
        Breakdown(CountBy(report, Verdict::kAlreadyFused, &Candidate::op)));
  }
  if (const int alone = report.Count(Verdict::kNoAdd); alone > 0) {
    text += fmt::format("without a residual Add: {}\n", Plural(alone, "norm"));
  }
  return text + LayerNorms(report);
}

std::string ExplainSites(const FusionReport& report, std::string_view fused,
                         const Terminal& terminal) {
  constexpr size_t kVerdictColumns = 17;  // "no residual add" and two spaces
  std::string text;
  for (const Candidate& candidate : report.candidates) {
    const std::string_view verdict = candidate.verdict == Verdict::kFused
                                         ? fused
                                         : VerdictName(candidate.verdict);
    text += terminal.Paint(StyleOf(candidate.verdict), verdict) +
            std::string(kVerdictColumns - verdict.size(), ' ') +
            Place(candidate) + "\n";
    const std::string indent(kVerdictColumns, ' ');
    if (const std::string why = Explanation(candidate); !why.empty()) {
      text += Paragraph(indent, why, terminal.width);
    }
    if (!candidate.hint.empty()) {
      text += Paragraph(indent, "hint: " + ir::Printable(candidate.hint),
                        terminal.width);
    }
  }
  return text;
}

Json SitesToJson(const FusionReport& report) {
  Json sites = Json::array();
  for (const Candidate& candidate : report.candidates)
    sites.push_back(ToJson(candidate));
  return Json{
      {"fused", report.Count(Verdict::kFused)},
      {"not_fused", report.Count(Verdict::kNotFused)},
      {"no_add", report.Count(Verdict::kNoAdd)},
      {"already_fused", report.Count(Verdict::kAlreadyFused)},
      {"layer_norms", report.layer_norms},
      {"variants", CountBy(report, Verdict::kFused, &Candidate::variant)},
      {"sites", std::move(sites)}};
}

}  // namespace addnorm::tool
