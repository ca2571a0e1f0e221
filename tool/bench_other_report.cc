// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_other_report.h"

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

using Json = nlohmann::ordered_json;

std::string OtherText(const OtherArm& other, const BenchCase& times) {
  std::string text = ResultsText(other.results);
  if (times.IsCompared(other.arm)) {
    const ArmComparison comparison = times.Compare(other.arm);
    text += fmt::format("; against {}: {}", ir::Printable(comparison.base),
                        InWords(comparison));
  }
  return text;
}

}  // namespace

std::string ArmLabel(const std::string& name) {
  constexpr size_t kMostColumns = 22;
  return Shorten(ir::Printable(name), kMostColumns);
}

std::vector<std::string> OtherRow(const OtherArm& other,
                                  const BenchCase& times) {
  const ArmTimes& arm = times.arms[other.arm];
  const bool is_base = arm.base == other.arm;
  return {ArmLabel(arm.name),
          ShortSeconds(arm.Median()),
          "",
          "",
          "",
          RatioText(times.Estimate(other.arm, 0)),
          is_base ? "" : RatioText(times.Estimate(other.arm, arm.base))};
}

std::string ToText(const std::vector<OtherArm>& others,
                   const std::vector<std::string>& not_run,
                   const BenchCase& times, size_t width) {
  std::string text;
  for (const OtherArm& other : others) {
    text += Paragraph("other       ",
                      fmt::format("{}: {}", ir::Printable(other.name),
                                  OtherText(other, times)),
                      width);
  }
  for (const std::string& reason : not_run)
    text += Paragraph("not run     ", reason, width);
  return text;
}

Json ToJson(const std::vector<OtherArm>& others) {
  Json rows = Json::array();
  for (const OtherArm& other : others) {
    rows.push_back({{"name", other.name},
                    {"arm", other.arm},
                    {"has_same_bits", other.results.is_equal()},
                    {"results", ResultsText(other.results)},
                    {"max_ulps", other.results.max_ulps}});
  }
  return rows;
}

}  // namespace addnorm::tool
