// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "fmt/format.h"
#include "tool/html/frame.h"
#include "tool/html/kernel_charts.h"
#include "tool/html/other_arms.h"
#include "tool/html/page.h"
#include "tool/report.h"

namespace addnorm::tool::html {

std::string KernelPage(const Json& report) {
  const Kernels cases = KernelViews(report);
  const Json& machine = report.at("machine");
  std::vector<OthersOf> others;
  std::vector<const Json*> usages;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Json& json = report.at("cases").at(i);
    others.push_back(
        {fmt::format("{}, {}, {}", cases[i].name(), cases[i].recipe,
                     Plural(cases[i].threads, "thread")),
         &json, &json.at("arms")});
    usages.push_back(&json.at("usage"));
  }
  Page page{
      .title = "What fusing Add and RMSNorm gains on this machine",
      .summary = Summarize(report.at("headline").get<std::string>(), cases),
      .sections = {{"ratios", "Fused against unfused, like for like",
                    RatiosContent(cases)},
                   {"arms", "All arms, case by case", ArmsContent(cases)},
                   {"sizes", "Over sizes: where the caches end",
                    SizesContent(cases, machine)},
                   {"roofline", "Roofline: what limits it",
                    RooflineContent(cases, report.at("arithmetic"))},
                   {"numbers", "All numbers", NumbersContent(cases)}},
      .method = kKernelMethod};
  page.summary.points.push_back(UsagePoint(usages));
  for (Section& section : OtherSections(others))
    page.sections.insert(page.sections.end() - 1, std::move(section));
  return RenderPage(page, report);
}

}  // namespace addnorm::tool::html
