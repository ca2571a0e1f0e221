// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/optimize_report.h"

#include <set>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "tool/report.h"
#include "tool/site_report.h"

namespace addnorm::tool {
namespace {

using Json = nlohmann::ordered_json;

int64_t CountOf(const OpCounts& counts, const std::string& op) {
  const auto found = counts.find(op);
  return found == counts.end() ? 0 : found->second;
}

std::vector<std::string> Row(std::string name, int64_t before, int64_t after) {
  return {std::move(name), std::to_string(before), std::to_string(after),
          before == after ? "" : fmt::format("{:+}", after - before)};
}

// Rows of operators whose number changed, and the total.
std::string ChangedOps(const OptimizeResult& result, size_t width) {
  std::set<std::string> ops;
  for (const auto& [op, count] : result.before) ops.insert(op);
  for (const auto& [op, count] : result.after) ops.insert(op);
  Table table("<>>>");
  table.AddRow({"", "before", "after", ""});
  for (const std::string& op : ops) {
    const int64_t before = CountOf(result.before, op);
    const int64_t after = CountOf(result.after, op);
    if (before != after) table.AddRow(Row(ir::Printable(op), before, after));
  }
  table.AddRow(Row("nodes", Total(result.before), Total(result.after)));
  return table.Render(width);
}

std::string Files(const OptimizeResult& result) {
  const std::string input = fmt::format("{} ({})", ir::Printable(result.input),
                                        FormatBytes(result.input_bytes));
  if (!result.is_written) {
    return fmt::format("{}: nothing was written, the output would have {}\n",
                       input, FormatBytes(result.output_bytes));
  }
  const bool is_copy = result.report.Count(passes::Verdict::kFused) == 0;
  return fmt::format("{} -> {} ({}{})\n", input, ir::Printable(result.output),
                     FormatBytes(result.output_bytes),
                     is_copy ? ", a copy byte for byte" : "");
}

std::string_view WhatIsDone(DataPlace place) {
  switch (place) {
    case DataPlace::kShared:
      return ", shared";
    case DataPlace::kCopied:
      return ", copied";
    case DataPlace::kPresent:
      return ", the same is there already";
    case DataPlace::kUnknown:
      break;
  }
  return "";
}

std::string DataFiles(const OptimizeResult& result) {
  std::string text;
  for (const DataFileFacts& file : result.data_files) {
    text +=
        fmt::format("external data: {} ({}){}\n", ir::Printable(file.location),
                    FormatBytes(file.bytes), WhatIsDone(file.place));
  }
  return text;
}

Json DataFilesToJson(const std::vector<DataFileFacts>& files) {
  Json rows = Json::array();
  for (const DataFileFacts& file : files) {
    rows.push_back({{"location", file.location},
                    {"bytes", file.bytes},
                    {"copied", file.place == DataPlace::kCopied}});
  }
  return rows;
}

}  // namespace

std::string ToText(const OptimizeResult& result, bool explain,
                   const Terminal& terminal) {
  std::string text;
  if (explain) {
    const std::string_view fused = result.is_written ? "fused" : "can be fused";
    text += ExplainSites(result.report, fused, terminal) + "\n";
  }
  text += ChangedOps(result, terminal.width) + "\n";
  text +=
      SummarizeSites(result.report, result.is_written ? "fused" : "would fuse",
                     !explain, terminal);
  for (const std::string& note : result.report.notes) {
    text += Paragraph("note: ", ir::Printable(note), terminal.width);
  }
  text += Files(result) + DataFiles(result);
  if (result.verification && result.is_written)
    text += result.verification->text;
  text +=
      fmt::format("time: {} ({} of CPU)\n", FormatSeconds(result.wall_seconds),
                  FormatSeconds(result.cpu_seconds));
  return text;
}

Json ToJson(const OptimizeResult& result) {
  Json json{
      {"input", {{"path", result.input}, {"bytes", result.input_bytes}}},
      {"output", {{"path", result.output}, {"bytes", result.output_bytes}}},
      {"written", result.is_written},
      {"target", result.target}};
  if (result.output.empty()) json["output"].erase("path");
  json.update(SitesToJson(result.report));
  json["notes"] = result.report.notes;
  json["nodes"] = {{"before", Total(result.before)},
                   {"after", Total(result.after)}};
  json["ops"] = {{"before", result.before}, {"after", result.after}};
  json["external_data"] = DataFilesToJson(result.data_files);
  if (result.verification) json["verification"] = result.verification->json;
  json["seconds"] = {{"wall", result.wall_seconds},
                     {"cpu", result.cpu_seconds}};
  return json;
}

}  // namespace addnorm::tool
