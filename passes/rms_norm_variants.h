// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The spellings of RMSNorm that the matcher knows, as data.
//
// A spelling is a sequence of rules: a row of the rule "norm" is ONNX text
// whose nodes are operators or calls of other rules (domain "rule"), and each
// rule has rows of its own. So 4 squares and means, 2 epsilons, 4 inverses and
// 9 norms are some 20 rows, not 288. Casts, operand order, absent attributes
// and the form of constants are not spelled: the matcher allows them everywhere
// and the fused body keeps them verbatim. Adding a spelling: one row here, one
// fixture in tests/fixtures/variants.
//
//   {.rule = "norm", .name = "div", .text = "rms = rule.rms(x) …", …}
#ifndef ADDNORM_PASSES_RMS_NORM_VARIANTS_H_
#define ADDNORM_PASSES_RMS_NORM_VARIANTS_H_

#include <span>
#include <string_view>

namespace addnorm::passes {

struct VariantRow {
  std::string_view rule;  // which rule it is an alternative of
  std::string_view name;  // unique within the rule; the fixture's name
  std::string_view
      tag;  // its part of a variant's name; "" for the commonest row
  std::string_view recipe;   // what it computes, one rounding per operation
  std::string_view seen_in;  // exporters and models that write it
  std::string_view
      text;  // ONNX text, a node a line; the last result is the rule's
};

// Rows of one rule stand together, the ones tried first first.
std::span<const VariantRow> RmsNormVariants();

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_RMS_NORM_VARIANTS_H_
