// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What fusing gained in the cases of bench --kernel, in words: how much, for
// which shapes, and where not.
//
//   points = GainPoints(cases);  // {{"Like for like", "Against unfused …"}, …}
#ifndef ADDNORM_TOOL_HTML_KERNEL_GAINS_H_
#define ADDNORM_TOOL_HTML_KERNEL_GAINS_H_

#include <string>
#include <vector>

#include "tool/html/bench_view.h"
#include "tool/html/bench_words.h"

namespace addnorm::tool::html {

// None if no comparison says whether fusing is worth it.
std::vector<SummaryPoint> GainPoints(const std::vector<KernelView>& cases);

// "15 %", or "5.2 to 19 %".
std::string PercentRange(double low, double high);

}  // namespace addnorm::tool::html

#endif  // ADDNORM_TOOL_HTML_KERNEL_GAINS_H_
