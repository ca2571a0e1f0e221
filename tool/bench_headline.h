// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Is fusing worth it, in one sentence: the same in terminal, JSON and page.
//
//   VerdictTally tally;
//   for (…) tally.Add(result.Compare(arm).verdict);
//   Headline(tally);  // "Mostly yes: fused is faster in 5 of 6 comparisons …"
#ifndef ADDNORM_TOOL_BENCH_HEADLINE_H_
#define ADDNORM_TOOL_BENCH_HEADLINE_H_

#include <cstddef>
#include <string>

#include "runtime/paired_statistics.h"
#include "tool/bench_comparison.h"

namespace addnorm::tool {

struct VerdictTally {
  size_t faster = 0, slower = 0;
  size_t none = 0;  // no difference, or none that can be measured
  size_t no_use = 0, too_few = 0;

  void Add(runtime::Verdict verdict);
  // Those that say whether fusing is worth it.
  size_t told() const { return faster + slower + none; }
  size_t all() const { return told() + no_use + too_few; }
};

// Of --kernel.
std::string Headline(const VerdictTally& tally);
// Of a model: end to end, fused against unfused.
std::string Headline(const ArmComparison& whole);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_HEADLINE_H_
