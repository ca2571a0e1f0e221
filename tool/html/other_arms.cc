// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/html/other_arms.h"

#include "passes/ir/printable.h"
#include "tool/bench_result.h"
#include "tool/html/markup.h"
#include "tool/machine_usage.h"

namespace addnorm::tool::html {
namespace {

std::vector<std::string> ToRow(const std::string& where, const Json& other) {
  const auto text = [&](const char* key) {
    return ir::Printable(other.at(key).get<std::string>());
  };
  const std::string name = text("name"), base = text("base");
  std::vector<std::string> row = {name, where, text("results")};
  if (base == name) {
    row.resize(5);
    return row;
  }
  row.push_back(base);
  row.push_back(InWords(ToEstimate(other.at("against_base")),
                        ToVerdict(other.at("verdict").get<std::string>())));
  return row;
}

}  // namespace

std::vector<Section> OtherSections(const std::vector<OthersOf>& cases) {
  TableData table{
      "Other models and runtimes, in the same rounds",
      "<<<<<",
      {"arm", "case", "results, beside unfused", "time against", "verdict"},
      {}};
  std::string not_run;
  for (const OthersOf& one : cases) {
    for (const Json& other : one.json->at("others"))
      table.rows.push_back(ToRow(one.name, other));
    for (const Json& reason : one.json->at("not_run"))
      not_run +=
          Paragraph("Not run" + (one.name.empty() ? "" : ", " + one.name) +
                    ": " + ir::Printable(reason.get<std::string>()));
  }
  if (table.rows.empty() && not_run.empty()) return {};
  return {{"others", "Other models and runtimes",
           (table.rows.empty() ? "" : Table(table)) + not_run}};
}

SummaryPoint UsagePoint(const std::vector<const Json*>& usages) {
  std::vector<MachineUsage> all;
  for (const Json* json : usages) {
    all.push_back(
        {.seconds = json->at("seconds").get<double>(),
         .steal = json->at("steal").get<double>(),
         .others = json->at("others").get<double>(),
         .switches = json->at("involuntary_switches").get<int64_t>()});
  }
  return {"The machine meanwhile", Capitalised(UsageText(Together(all))) + "."};
}

}  // namespace addnorm::tool::html
