// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/pattern.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "passes/ir/check.h"

namespace addnorm::passes {
namespace {

constexpr std::string_view kRuleDomain = "rule.";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \n") - begin + 1);
}

// The pieces between commas that are not inside brackets.
std::vector<std::string_view> SplitList(std::string_view text) {
  std::vector<std::string_view> items;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    if (const auto item = Trim(text.substr(begin, i - begin)); !item.empty())
      items.push_back(item);
    begin = i + 1;
  }
  return items;
}

std::pair<std::string, std::string> SplitAt(std::string_view text,
                                            char separator) {
  const size_t at = text.find(separator);
  ADDNORM_CHECK(at != std::string_view::npos,
                "variant row: '" + std::string(text) + "'");
  return {std::string(Trim(text.substr(0, at))),
          std::string(Trim(text.substr(at + 1)))};
}

// out = Op<name = value, …>(input, …)
PatternNode ParseNode(std::string_view line) {
  PatternNode node;
  std::string call;
  std::tie(node.output, call) = SplitAt(line, '=');
  const size_t open = call.find('(');
  ADDNORM_CHECK(open != std::string::npos && call.back() == ')',
                "variant row: '" + call + "'");
  for (std::string_view input : SplitList(
           std::string_view(call).substr(open + 1, call.size() - open - 2))) {
    node.inputs.emplace_back(input);
  }
  std::string_view head = Trim(std::string_view(call).substr(0, open));
  if (const size_t angle = head.find('<'); angle != std::string_view::npos) {
    for (std::string_view item :
         SplitList(head.substr(angle + 1, head.size() - angle - 2))) {
      node.attributes.push_back(SplitAt(item, '='));
    }
    head = Trim(head.substr(0, angle));
  }
  node.is_rule = head.starts_with(kRuleDomain);
  node.op = node.is_rule ? head.substr(kRuleDomain.size()) : head;
  if (node.op == "Constant") {
    const std::string& text = node.attributes.at(0).second;
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    node.constant = value;
  }
  return node;
}

PatternRow ParseRow(const VariantRow& variant) {
  PatternRow row;
  row.variant = &variant;
  std::vector<std::string> made;
  for (std::string_view rest = variant.text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (const auto line = Trim(rest.substr(0, end)); !line.empty()) {
      row.nodes.push_back(ParseNode(line));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const PatternNode& node : row.nodes) {
    for (const std::string& input : node.inputs) {
      const bool is_made =
          std::find(made.begin(), made.end(), input) != made.end();
      const bool is_role =
          std::find(std::begin(kRoleNames), std::end(kRoleNames), input) !=
          std::end(kRoleNames);
      if (is_made || is_role) continue;
      ADDNORM_CHECK(row.operand.empty() || row.operand == input,
                    "two operands: " + input);
      row.operand = input;
    }
    made.push_back(node.output);
  }
  return row;
}

}  // namespace

const Grammar& RmsNormGrammar() {
  static const Grammar* grammar = [] {
    auto* rules = new Grammar;
    for (const VariantRow& variant : RmsNormVariants()) {
      (*rules)[std::string(variant.rule)].push_back(ParseRow(variant));
    }
    return rules;
  }();
  return *grammar;
}

}  // namespace addnorm::passes
