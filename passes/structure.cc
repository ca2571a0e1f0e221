// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/structure.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/expanded_size.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"

namespace addnorm::passes {
namespace {

constexpr size_t kMaxDifferences = 100;
// Nodes of a model with its calls expanded. Models that have more are compared
// function by function: equal or not comparable.
constexpr int64_t kMostExpanded = 1'000'000;

// "RmsNorm 'norm_3', which makes 'y', 's'".
std::string CallOf(const ir::Node& call) {
  std::string results;
  for (const ir::Value* output : call.outputs()) {
    if (output == nullptr) continue;
    results += fmt::format("{}'{}'", results.empty() ? "" : ", ",
                           ir::Printable(output->name()));
  }
  // Without a name, it is described by what it makes.
  return call.name.empty() || results.empty()
             ? call.Describe()
             : fmt::format("{}, which makes {}", call.Describe(), results);
}

std::string PlaceOf(const Expression& expression, Side side) {
  const ir::Value* value = expression.values[side];
  if (value == nullptr) return expression.label;
  const std::string place =
      value->producer() != nullptr
          ? value->producer()->Describe()
          : fmt::format("'{}'", ir::Printable(value->name()));
  const ir::Node* call = expression.calls[side];
  return call == nullptr ? place
                         : fmt::format("{} in {}", place, CallOf(*call));
}

size_t FirstDifference(std::string_view a, std::string_view b) {
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// The beginning, and what is around the byte at `at`: attributes may be long.
std::string Shortened(const std::string& label, size_t at) {
  constexpr size_t kMost = 160, kHead = 60, kAround = 30;
  if (label.size() <= kMost) return label;
  std::string text = label.substr(0, kHead) + "…";
  const size_t from = std::max(kHead, at < kAround ? 0 : at - kAround);
  if (from > kHead) text += label.substr(from, 2 * kAround) + "…";
  return text;
}

using NumberPairs = std::set<std::pair<Number, Number>>;

// Walks pairs of numbers that should be equal, from the outputs down.
class DifferenceFinder {
 public:
  DifferenceFinder(const ValueNumbering& numbering,
                   std::vector<StructureDifference>& found)
      : numbering_(numbering), found_(found) {}

  // False if there are more than are listed.
  bool Find(const std::vector<Number>& a, const std::vector<Number>& b) {
    for (size_t i = a.size(); i-- > 0;) Push(a[i], b[i]);
    while (!pending_.empty() && found_.size() < kMaxDifferences) {
      const auto [x, y] = pending_.back();
      pending_.pop_back();
      Compare(x, y);
    }
    return pending_.empty();
  }

  // What was walked.
  const NumberPairs& pairs() const { return seen_; }

 private:
  void Push(Number a, Number b) {
    if (a != b && seen_.emplace(a, b).second) pending_.emplace_back(a, b);
  }

  void Add(Number a, Number b, std::string text) {
    const auto place = [this](Number number, Side side) {
      return number == kAbsent ? std::string()
                               : PlaceOf(numbering_.expression(number), side);
    };
    const auto what = [this](Number number, Side side) {
      if (number == kAbsent) return StructurePlace{};
      const Expression& expression = numbering_.expression(number);
      return StructurePlace{expression.values[side], expression.calls[side]};
    };
    found_.push_back({place(a, 0), place(b, 1), std::move(text), false,
                      what(a, 0), what(b, 1)});
  }

  void Compare(Number a, Number b) {
    if (a == kAbsent || b == kAbsent) {
      Add(a, b, "one has an operand more");
      return;
    }
    const Expression& x = numbering_.expression(a);
    const Expression& y = numbering_.expression(b);
    if (x.label != y.label || x.output != y.output ||
        x.operands.size() != y.operands.size()) {
      const size_t from = FirstDifference(x.label, y.label);
      Add(a, b,
          fmt::format("{}, expected {}", Shortened(y.label, from),
                      Shortened(x.label, from)));
      return;
    }
    if (x.operands == y.operands) {
      // The keys differ in what the label does not say.
      Add(a, b,
          fmt::format("another {}{}", x.operands.empty() ? "" : "attribute of ",
                      Shortened(x.label, 0)));
      return;
    }
    for (size_t i = x.operands.size(); i-- > 0;)
      Push(x.operands[i], y.operands[i]);
  }

  const ValueNumbering& numbering_;
  std::vector<StructureDifference>& found_;
  std::vector<std::pair<Number, Number>> pending_;
  NumberPairs seen_;
};

std::string InterfaceOf(const ir::Value& value) {
  const ir::TensorType& type = value.type;
  return fmt::format("'{}' ({})", ir::Printable(value.name()),
                     type.other.empty() ? ir::DataTypeName(type.element)
                                        : ir::Printable(type.other));
}

// Different names, types, or shapes that no run can give both.
bool IsSameInterface(const ir::Value& a, const ir::Value& b) {
  if (InterfaceOf(a) != InterfaceOf(b)) return false;
  return !a.type.shape || !b.type.shape ||
         !ir::ProvablyDiffer(*a.type.shape, *b.type.shape);
}

// The type too where names and element types say the same.
std::string InterfaceText(std::string_view what, size_t i, const ir::Value& a,
                          const ir::Value& b) {
  if (InterfaceOf(a) != InterfaceOf(b)) {
    return fmt::format("{} {} is {}, expected {}", what, i, InterfaceOf(b),
                       InterfaceOf(a));
  }
  return fmt::format("{} '{}' is {}, expected {}", what,
                     ir::Printable(a.name()), ir::ToString(b.type),
                     ir::ToString(a.type));
}

void CompareInterface(std::string_view what, const std::vector<ir::Value*>& a,
                      const std::vector<ir::Value*>& b,
                      std::vector<StructureDifference>& found) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string x = i < a.size() ? InterfaceOf(*a[i]) : "";
    const std::string y = i < b.size() ? InterfaceOf(*b[i]) : "";
    const bool in_both = !x.empty() && !y.empty();
    if (in_both && IsSameInterface(*a[i], *b[i])) continue;
    std::string text = y.empty() ? fmt::format("{} {} is missing", what, x)
                       : x.empty()
                           ? fmt::format("{} {} is not expected", what, y)
                           : InterfaceText(what, i, *a[i], *b[i]);
    found.push_back({x, y, std::move(text), /*is_interface=*/true});
  }
}

// Differences and swaps of one way to number; false if the lists are cut.
absl::StatusOr<bool> CompareValues(const ir::Model& a, const ir::Model& b,
                                   ValueNumbering& numbering,
                                   std::vector<StructureDifference>& found,
                                   NumberPairs& pairs) {
  ASSIGN_OR_RETURN(const std::vector<Number> x, numbering.NumberOutputs(a, 0));
  ASSIGN_OR_RETURN(const std::vector<Number> y, numbering.NumberOutputs(b, 1));
  DifferenceFinder finder(numbering, found);
  const bool is_complete = finder.Find(x, y);
  pairs = finder.pairs();
  return is_complete;
}

// The first value of each number in the main graph.
absl::flat_hash_map<Number, const ir::Value*> FirstValues(
    const ir::Model& model, const ValueNumbering& numbering, Side side) {
  absl::flat_hash_map<Number, const ir::Value*> first;
  for (const ir::Value* value : model.graph.values()) {
    const auto number = numbering.numbers(side).find(value);
    if (number != numbering.numbers(side).end() && number->second != kAbsent)
      first.try_emplace(number->second, value);
  }
  return first;
}

// Values of one number are twins.
absl::flat_hash_map<const ir::Value*, const ir::Value*> FindTwins(
    const ir::Model& a, const ValueNumbering& numbering) {
  const auto by_number = FirstValues(a, numbering, 0);
  absl::flat_hash_map<const ir::Value*, const ir::Value*> twins;
  for (const auto& [value, number] : numbering.numbers(1)) {
    const auto twin = by_number.find(number);
    if (twin != by_number.end()) twins[value] = twin->second;
  }
  return twins;
}

void FindCounterparts(const ir::Model& a, const ir::Model& b,
                      const ValueNumbering& numbering, const NumberPairs& pairs,
                      Structure& structure) {
  const auto of_a = FirstValues(a, numbering, 0);
  const auto of_b = FirstValues(b, numbering, 1);
  for (const auto& [x, y] : pairs) {
    const auto value_a = of_a.find(x);
    const auto value_b = of_b.find(y);
    if (value_a != of_a.end() && value_b != of_b.end() &&
        !structure.twins.contains(value_b->second))
      structure.counterparts.try_emplace(value_b->second, value_a->second);
  }
  // The walk ends where operators differ; a name tells of what is behind.
  for (const ir::Value* value : b.graph.values()) {
    const ir::Value* namesake = a.graph.FindValue(value->name());
    if (namesake != nullptr && !structure.twins.contains(value))
      structure.counterparts.try_emplace(value, namesake);
  }
}

absl::Status CheckInputsHaveTypes(const ir::Model& model) {
  for (const ir::Value* input : model.graph.inputs()) {
    if (input->type.known() || !input->type.other.empty()) continue;
    return absl::UnimplementedError(
        fmt::format("input '{}' has no type that can be compared",
                    ir::Printable(input->name())));
  }
  return absl::OkStatus();
}

// Inputs that may be left out: what stands for them then.
absl::Status CompareDefaults(const ir::Model& a, const ir::Model& b,
                             TensorContents& contents,
                             std::vector<StructureDifference>& found) {
  for (size_t i = 0; i < a.graph.inputs().size(); ++i) {
    const ir::Tensor* x = a.graph.inputs()[i]->initializer();
    const ir::Tensor* y = b.graph.inputs()[i]->initializer();
    if (a.graph.inputs()[i]->is_sparse_initializer() ||
        b.graph.inputs()[i]->is_sparse_initializer()) {
      return absl::UnimplementedError(
          fmt::format("input '{}' has a sparse default, which is not compared",
                      ir::Printable(a.graph.inputs()[i]->name())));
    }
    if (x == nullptr && y == nullptr) continue;
    // Before version 4 of the IR such an input is a constant. B may let it be
    // replaced (a raised version does): whoever runs A as it is cannot tell.
    const bool loses_input = a.ir_version >= 4 && b.ir_version < 4;
    bool equal = !loses_input && x != nullptr && y != nullptr &&
                 x->type == y->type && x->dims == y->dims;
    if (equal) {
      ASSIGN_OR_RETURN(const int32_t class_x, contents.Classify(0, *x));
      ASSIGN_OR_RETURN(const int32_t class_y, contents.Classify(1, *y));
      equal = class_x == class_y;
    }
    if (equal) continue;
    const std::string place = InterfaceOf(*a.graph.inputs()[i]);
    found.push_back({place,
                     place,
                     "another default of an input",
                     /*is_interface=*/true,
                     {a.graph.inputs()[i]},
                     {b.graph.inputs()[i]}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Structure> CompareStructure(const ir::Model& a,
                                           const ir::Model& b,
                                           TensorContents& contents,
                                           OperatorSchemas& schemas) {
  Structure structure;
  CompareInterface("input", a.graph.inputs(), b.graph.inputs(),
                   structure.differences);
  CompareInterface("output", a.graph.outputs(), b.graph.outputs(),
                   structure.differences);
  if (!structure.is_equal()) return structure;
  RETURN_IF_ERROR(CheckInputsHaveTypes(a));
  std::vector<StructureDifference> defaults;
  RETURN_IF_ERROR(CompareDefaults(a, b, contents, defaults));
  structure.differences = defaults;
  NumberPairs pairs;
  const bool expands = ir::ExpandedSizes(a).Of(a.graph) <= kMostExpanded &&
                       ir::ExpandedSizes(b).Of(b.graph) <= kMostExpanded;
  // B's are compared with A's already; A's cannot be other than they are.
  NumberingOptions options = {.expands_calls = expands,
                              .inputs_keep_defaults = a.ir_version < 4};
  ValueNumbering ordered(contents, schemas, options);
  ASSIGN_OR_RETURN(bool is_complete,
                   CompareValues(a, b, ordered, structure.differences, pairs));
  structure.twins = FindTwins(a, ordered);
  if (structure.is_equal()) return structure;
  options.commutes = true;
  ValueNumbering unordered(contents, schemas, options);
  std::vector<StructureDifference> but_for_swaps = std::move(defaults);
  ASSIGN_OR_RETURN(is_complete,
                   CompareValues(a, b, unordered, but_for_swaps, pairs));
  structure.differences = std::move(but_for_swaps);
  if (!structure.is_equal() && unordered.left_calls_whole()) {
    return absl::UnimplementedError(
        "calls expand to too many nodes, and what they call is not the same");
  }
  structure.has_more = !is_complete;
  structure.twins = FindTwins(a, unordered);
  FindCounterparts(a, b, unordered, pairs, structure);
  for (const Number number : unordered.swapped()) {
    const Expression& swapped = unordered.expression(number);
    structure.swaps.push_back({PlaceOf(swapped, 0), PlaceOf(swapped, 1),
                               "operands are in the other order", false});
  }
  return structure;
}

}  // namespace addnorm::passes
