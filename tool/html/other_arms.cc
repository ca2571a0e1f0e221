// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/html/other_arms.h"

#include "passes/ir/printable.h"
#include "tool/html/markup.h"
#include "tool/machine_usage.h"

namespace addnorm::tool::html {
namespace {

// `arms` are those of the same case.
std::vector<std::string> ToRow(const std::string& where, const Json& other,
                               const Json& arms) {
  const auto text = [](const Json& json) {
    return ir::Printable(json.get<std::string>());
  };
  std::vector<std::string> row = {text(other.at("name")), where,
                                  text(other.at("results")), "", ""};
  const Json& arm = arms.at(other.at("arm").get<size_t>());
  if (const auto found = arm.find("comparison"); found != arm.end()) {
    row[3] = text(found->at("base"));
    row[4] = found->at("words").get<std::string>();
  }
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
      table.rows.push_back(ToRow(one.name, other, *one.arms));
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
