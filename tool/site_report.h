// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A FusionReport as text and as JSON, for `optimize` and `inspect`. It decides
// nothing: verdicts and reasons are the pass's.
//
//   text += ExplainSites(report, terminal);
#ifndef ADDNORM_TOOL_SITE_REPORT_H_
#define ADDNORM_TOOL_SITE_REPORT_H_

#include <string>
#include <string_view>

#include "nlohmann/json.hpp"
#include "passes/fusion_report.h"
#include "tool/term.h"

namespace addnorm::tool {

// "fused 24 of 25 sites (reciprocal 20, one_div_sqrt 4)", the most frequent
// reasons of those that were not fused (unless ExplainSites gives all of them
// anyway), and how many others there are. `verb` is "fused", "would fuse" or
// "can fuse".
std::string SummarizeSites(const passes::FusionReport& report,
                           std::string_view verb, bool with_reasons,
                           const Terminal& terminal);

// Every candidate: verdict, node, where, what it became or why not. `fused` is
// the verdict of a site: "fused" only of a model that was written, else "can be
// fused".
std::string ExplainSites(const passes::FusionReport& report,
                         std::string_view fused, const Terminal& terminal);

// Counts by verdict, sites fused by variant, and the list of sites.
nlohmann::ordered_json SitesToJson(const passes::FusionReport& report);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_SITE_REPORT_H_
