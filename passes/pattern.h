// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The variants table in parsed form: each row's text as a list of nodes.
//
// It is a parser of the few forms that rows use, not of ONNX text; a test
// parses every row with ONNX's own parser too.
//
//   const Grammar& grammar = RmsNormGrammar();
//   for (const PatternRow& row : grammar.at("norm")) …
#ifndef ADDNORM_PASSES_PATTERN_H_
#define ADDNORM_PASSES_PATTERN_H_

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/rms_norm_variants.h"

namespace addnorm::passes {

// Free names with a meaning of their own; every other free name is the rule's
// operand.
enum class Role {
  kScale,          // the norm's weight
  kRowScale,       // the weight, which must not be a constant of one element
  kEpsilon,        // a constant of one element
  kLength,         // the constant length of the last axis of x
  kInverseLength,  // one divided by that
};
inline constexpr std::string_view kRoleNames[] = {
    "scale", "row_scale", "epsilon", "length", "inverse_length"};

struct PatternNode {
  std::string output;
  std::string op;        // operator, or name of a rule
  bool is_rule = false;  // domain "rule"
  std::vector<std::pair<std::string, std::string>> attributes;  // as written
  std::vector<std::string> inputs;

  // Of a Constant: the value that one element must have.
  std::optional<double> constant;
};

struct PatternRow {
  const VariantRow* variant = nullptr;
  std::string operand;  // the free name that stands for the rule's operand
  std::vector<PatternNode> nodes;

  const std::string& result() const { return nodes.back().output; }
};

using Grammar = absl::flat_hash_map<std::string, std::vector<PatternRow>>;

// Parsed once. A row that does not parse is our bug.
const Grammar& RmsNormGrammar();

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_PATTERN_H_
