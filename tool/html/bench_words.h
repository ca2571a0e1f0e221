// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A benchmark in plain words, for a reader who has nothing but the page: is
// fusing worth it on this machine, for which shapes, and what limits it.
// Verdicts are the report's: here they are counted and listed, not made.
//
//   const Summary summary = Summarize(ViewModel(report));
#ifndef ADDNORM_TOOL_HTML_BENCH_WORDS_H_
#define ADDNORM_TOOL_HTML_BENCH_WORDS_H_

#include <string>
#include <vector>

#include "tool/html/bench_view.h"

namespace addnorm::tool::html {

struct SummaryPoint {
  std::string lead;  // "For which shapes"
  std::string text;  // sentences
};

struct Summary {
  std::string headline;
  std::vector<SummaryPoint> points;
};

// The beginning of a sentence.
std::string Capitalised(std::string text);

Summary Summarize(const std::string& headline,
                  const std::vector<KernelView>& cases);
Summary Summarize(const ModelView& model);

}  // namespace addnorm::tool::html

#endif  // ADDNORM_TOOL_HTML_BENCH_WORDS_H_
