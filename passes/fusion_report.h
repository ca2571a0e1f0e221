// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What fuse-add-rms-norm found and did: one Candidate for each sum that reaches
// something that looks like an RMSNorm, and for each RMSNorm without an Add.
//
// It holds text, not pointers, so it outlives the nodes that were fused away.
// It is data for report.cc and --json; nothing here decides anything.
#ifndef ADDNORM_PASSES_FUSION_REPORT_H_
#define ADDNORM_PASSES_FUSION_REPORT_H_

#include <string>
#include <string_view>
#include <vector>

namespace addnorm::passes {

enum class Verdict {
  kFused,         // or, before rewriting: can be fused
  kNotFused,      // an Add and something like a norm, but a condition failed
  kNoAdd,         // an RMSNorm whose input no residual Add makes
  kAlreadyFused,  // a fused op of this tool or of another one
};

// "fused", "not fused", "no residual add", "already fused".
std::string_view VerdictName(Verdict verdict);

struct Candidate {
  Verdict verdict = Verdict::kNotFused;
  std::string graph;  // "" for the main graph, else e.g. "function 'my::Block'"
  std::string node;  // "Add '/layers.0/Add'": the Add, or the norm's first node
  std::string sum;   // the value that the norm reads
  std::string y;     // the norm's result, "" if the match ended earlier
  std::string variant;  // "one_div_sqrt", "" if the match ended earlier
  std::string op;       // op_type of the fused op, "" if not fused
  std::string reason;   // the deepest condition that failed
  std::string hint;     // the way out, "" if there is none
};

struct FusionReport {
  std::vector<Candidate> candidates;
  std::vector<std::string>
      notes;  // what changed beside the sites ("ir_version raised …")
  int layer_norms =
      0;  // mean-subtracting norms: out of scope, one line in explain

  int Count(Verdict verdict) const;
};

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_FUSION_REPORT_H_
