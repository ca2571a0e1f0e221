// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What pages say of arms that are not the tool's own (other models, ONNX
// Runtime), and of what else the machine did meanwhile; of the pair and of
// models alike.
//
//   page.summary.points.push_back(UsagePoint(report.at("usage")));
#ifndef ADDNORM_TOOL_HTML_OTHER_ARMS_H_
#define ADDNORM_TOOL_HTML_OTHER_ARMS_H_

#include <string>
#include <vector>

#include "tool/html/bench_view.h"
#include "tool/html/bench_words.h"
#include "tool/html/frame.h"

namespace addnorm::tool::html {

// Where "others" and "not_run" are, and the "arms" of their case; what the page
// calls it ("" if there is but one).
struct OthersOf {
  std::string name;
  const Json* json;
  const Json* arms;
};

// One section with a table, and what did not run; none without others.
std::vector<Section> OtherSections(const std::vector<OthersOf>& cases);

// The time that other programs took, of one or several objects "usage".
SummaryPoint UsagePoint(const std::vector<const Json*>& usages);

}  // namespace addnorm::tool::html

#endif  // ADDNORM_TOOL_HTML_OTHER_ARMS_H_
