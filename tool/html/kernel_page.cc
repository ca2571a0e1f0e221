// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/html/frame.h"
#include "tool/html/kernel_charts.h"
#include "tool/html/page.h"

namespace addnorm::tool::html {

std::string KernelPage(const Json& report) {
  const Kernels cases = KernelViews(report);
  const Json& machine = report.at("machine");
  return RenderPage(
      {.title = "What fusing Add and RMSNorm gains on this machine",
       .summary = Summarize(cases),
       .sections = {{"ratios", "Fused against unfused, like for like",
                     RatiosContent(cases)},
                    {"arms", "All arms, case by case", ArmsContent(cases)},
                    {"sizes", "Over sizes: where the caches end",
                     SizesContent(cases, machine)},
                    {"roofline", "Roofline: what limits it",
                     RooflineContent(cases, report.at("arithmetic"))},
                    {"numbers", "All numbers", NumbersContent(cases)}},
       .method = kKernelMethod},
      report);
}

}  // namespace addnorm::tool::html
