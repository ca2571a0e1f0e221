// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/einsum_loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "runtime/ops/axis_split.h"

namespace addnorm::runtime {
namespace {

// A letter, or an axis of the ellipsis: those are negative, -1 the last one.
using Label = int;
using Labels = std::vector<Label>;

constexpr Label kEllipsis = 0;  // in a term, until the ranks are known

struct Equation {
  std::vector<Labels> terms;
  Labels result;
  bool has_result = false;
};

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

absl::StatusOr<Labels> ParseTerm(const std::string& text) {
  Labels labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsLetter(text[i])) {
      labels.push_back(text[i]);
    } else if (text.compare(i, 3, "...") == 0 &&
               std::count(labels.begin(), labels.end(), kEllipsis) == 0) {
      labels.push_back(kEllipsis);
      i += 2;
    } else {
      return OpContext::Invalid("'{}' is no term of an equation",
                                ir::Printable(text));
    }
  }
  return labels;
}

absl::StatusOr<Equation> Parse(std::string text) {
  std::erase(text, ' ');
  Equation equation;
  const size_t arrow = text.find("->");
  equation.has_result = arrow != std::string::npos;
  if (equation.has_result) {
    ASSIGN_OR_RETURN(equation.result, ParseTerm(text.substr(arrow + 2)));
    text.resize(arrow);
  }
  size_t begin = 0;
  while (true) {
    const size_t comma = text.find(',', begin);
    ASSIGN_OR_RETURN(equation.terms.emplace_back(),
                     ParseTerm(text.substr(begin, comma - begin)));
    if (comma == std::string::npos) return equation;
    begin = comma + 1;
  }
}

// Puts `count` labels in the place of the ellipsis.
void ExpandEllipsis(Labels& labels, int64_t count) {
  const auto at = std::find(labels.begin(), labels.end(), kEllipsis);
  if (at == labels.end()) return;
  Labels axes;
  for (int64_t i = count; i > 0; --i) axes.push_back(static_cast<Label>(-i));
  labels.insert(labels.erase(at), axes.begin(), axes.end());
}

// Without "->": the ellipsis, then the letters that occur once, sorted.
Labels ImplicitResult(const std::vector<Labels>& terms, int64_t ellipsis) {
  std::map<Label, int> occurrences;
  for (const Labels& term : terms) {
    for (const Label label : term) ++occurrences[label];
  }
  Labels result = {kEllipsis};
  ExpandEllipsis(result, ellipsis);
  for (const auto& [label, count] : occurrences) {
    if (label > 0 && count == 1) result.push_back(label);
  }
  return result;
}

// Ranks are known now: no ellipsis is left.
absl::Status Resolve(const OpContext& op, Equation& equation) {
  if (equation.terms.size() != op.input_count())
    return OpContext::Invalid("the equation has {} terms for {} operands",
                              equation.terms.size(), op.input_count());
  int64_t ellipsis = 0;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    Labels& term = equation.terms[i];
    const bool has_ellipsis =
        std::count(term.begin(), term.end(), kEllipsis) > 0;
    const int64_t letters =
        static_cast<int64_t>(term.size()) - (has_ellipsis ? 1 : 0);
    const int64_t rest = op.input(i).rank() - letters;
    if (rest < 0 || (rest > 0 && !has_ellipsis))
      return OpContext::Invalid("operand {} is {}, its term has {} letters", i,
                                Describe(op.input(i)), letters);
    ExpandEllipsis(term, rest);
    ellipsis = std::max(ellipsis, rest);
  }
  if (equation.has_result) {
    ExpandEllipsis(equation.result, ellipsis);
  } else {
    equation.result = ImplicitResult(equation.terms, ellipsis);
  }
  return absl::OkStatus();
}

absl::Status AddOperand(const OpContext& op, size_t operand, const Labels& term,
                        std::map<Label, EinsumLoop>& loops) {
  const Dims& dims = op.input(operand).dims();
  int64_t stride = 1;
  for (size_t axis = term.size(); axis-- > 0;) {
    EinsumLoop& loop = loops[term[axis]];
    loop.strides.resize(op.input_count(), 0);
    if (loop.size == 1) loop.size = dims[axis];
    if (dims[axis] != 1 && dims[axis] != loop.size)
      return OpContext::Invalid("sizes {} and {} of one label of the equation",
                                loop.size, dims[axis]);
    if (dims[axis] != 1) loop.strides[operand] += stride;
    stride = SizeProduct(stride, dims[axis]);
  }
  return absl::OkStatus();
}

absl::StatusOr<EinsumLoops> LoopsOf(const OpContext& op,
                                    const Equation& equation) {
  std::map<Label, EinsumLoop> by_label;
  for (size_t i = 0; i < equation.terms.size(); ++i)
    RETURN_IF_ERROR(AddOperand(op, i, equation.terms[i], by_label));
  EinsumLoops loops;
  std::set<Label> used;
  Dims summed;
  for (const Label label : equation.result) {
    const auto found = by_label.find(label);
    if (found == by_label.end() || !used.insert(label).second)
      return OpContext::Invalid(
          "a label of the result is in no term, or twice in the result");
    loops.kept.push_back(found->second);
    loops.dims.push_back(found->second.size);
  }
  for (const Labels& term : equation.terms) {
    for (const Label label : term) {
      if (!used.insert(label).second) continue;
      loops.summed.push_back(by_label[label]);
      summed.push_back(by_label[label].size);
    }
  }
  const std::optional<int64_t> count = ElementCount(summed);
  if (!count) return OpContext::Invalid("sums over too many elements");
  loops.summed_count = *count;
  return loops;
}

}  // namespace

absl::StatusOr<EinsumLoops> EinsumLoopsOf(const OpContext& op) {
  if (op.input_count() == 0) return OpContext::Invalid("has no operands");
  RETURN_IF_ERROR(op.RequireInputs(op.input_count()));
  for (size_t i = 1; i < op.input_count(); ++i) {
    if (op.input(i).type() != op.input(0).type())
      return OpContext::Invalid("operands are {} and {}", Describe(op.input(0)),
                                Describe(op.input(i)));
  }
  ASSIGN_OR_RETURN(Equation equation,
                   Parse(op.attributes().String("equation", "")));
  RETURN_IF_ERROR(Resolve(op, equation));
  return LoopsOf(op, equation);
}

}  // namespace addnorm::runtime
