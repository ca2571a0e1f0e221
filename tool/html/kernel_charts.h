// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What the charts of bench --kernel show, section by section: HTML with charts
// (charts.h), and their numbers as tables.
//
//   page.sections.push_back({"arms", "All arms", ArmsContent(cases)});
#ifndef ADDNORM_TOOL_HTML_KERNEL_CHARTS_H_
#define ADDNORM_TOOL_HTML_KERNEL_CHARTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "tool/html/bench_view.h"
#include "tool/html/charts.h"
#include "tool/html/frame.h"

namespace addnorm::tool::html {

using Kernels = std::vector<KernelView>;

// Fused against unfused with the same stores: ratios of all cases.
std::string RatiosContent(const Kernels& cases);
// {unfused, fused} × {plain, streaming, in place}: a chart a case.
std::string ArmsContent(const Kernels& cases);
// Time of an element over sizes, with the caches' sizes.
std::string SizesContent(const Kernels& cases, const Json& machine);
// Intensity and speed below the roofs of bandwidth and arithmetic.
std::string RooflineContent(const Kernels& cases, const Json& arithmetic);
// All numbers of all arms.
std::string NumbersContent(const Kernels& cases);

// How an arm looks in all charts.
Series LookOf(const StoresRow& stores, bool is_fused);
std::vector<LegendEntry> ArmKeys(bool has_line);
// f(look, name of the arm), for the six arms.
template <typename F>
void ForArms(F f) {
  for (const bool is_fused : {false, true})
    for (const StoresRow& stores : kStores)
      f(LookOf(stores, is_fused), is_fused ? stores.fused : stores.unfused);
}

// Cases that differ in shape alone, in the order of the sweep.
struct KernelGroup {
  std::string name;
  std::vector<const KernelView*> cases;  // by size

  bool has_sizes() const {  // more than one
    return cases.front()->tensor_bytes != cases.back()->tensor_bytes;
  }
};
std::vector<KernelGroup> GroupsOf(const Kernels& cases);

}  // namespace addnorm::tool::html

#endif  // ADDNORM_TOOL_HTML_KERNEL_CHARTS_H_
