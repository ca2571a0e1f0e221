// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The search behind matcher.h, for one first operator; not for other files.
//
// It walks rows and operators together: a goal is a pattern node still to be
// matched, an agenda the goals that are left. A goal that calls a rule is
// replaced by the nodes of one of its rows after the other; a goal that is an
// operator is tried on every reader of an operand that is known already, in
// every operand order. What a failed try bound is undone. The depth is that of
// the pattern, never that of the graph.
//
//   NormMatch match = NormSearch(model, constants, pow).Run();
#ifndef ADDNORM_PASSES_NORM_SEARCH_H_
#define ADDNORM_PASSES_NORM_SEARCH_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "passes/constants.h"
#include "passes/ir/model.h"
#include "passes/matcher.h"
#include "passes/pattern.h"

namespace addnorm::passes {

// Casts in a row between two steps; converters write two or three.
inline constexpr int kMaxCasts = 8;

// A variable of the search: a value of the graph, or what a constant must
// equal.
struct Slot {
  ir::Value* value = nullptr;
  std::optional<double> constant;
};

// The roles have the first slots, then come x and y of the norm.
using SlotId = size_t;
constexpr SlotId kRoleSlots = std::size(kRoleNames);
constexpr SlotId kXSlot = kRoleSlots;
constexpr SlotId kYSlot = kRoleSlots + 1;

// One pattern node still to be matched, its names resolved to slots.
struct Goal {
  const PatternNode* pattern = nullptr;
  std::vector<SlotId> inputs;
  SlotId output = 0;
};

// Goals still open, the next one last.
using Agenda = std::vector<Goal>;

inline bool Contains(const std::vector<ir::Node*>& nodes,
                     const ir::Node* node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

class NormSearch {
 public:
  // `argument`: in the body of a called function, what is known of the value
  // that the call gives it to norm.
  NormSearch(ir::Model& model, Constants& constants, ir::Node* head,
             std::optional<RowsOf> argument = std::nullopt)
      : model_(model),
        constants_(constants),
        head_(head),
        graph_(head->graph()),
        is_callee_(argument.has_value()),
        rows_(is_callee_ ? *std::move(argument)
                         : RowsOf(model, *StripCasts(head->input(0)))) {}

  // `with_scale`: false for the norm without weight only.
  NormMatch Run(bool with_scale = true);
  // The norm that a call is, if its function's body is the norm `body`.
  NormMatch RunCall(const ir::Function& function, const NormMatch& body);

 private:
  // What Undo returns to.
  struct Mark {
    size_t slots, operators, casts, tags;
    NormMatch result;
  };

  bool Solve(Agenda agenda);
  bool SolveRule(const Goal& goal, const Agenda& rest);
  bool SolveConstant(const Goal& goal, Agenda rest);
  bool SolveIdentity(const Goal& goal, Agenda rest);
  bool SolveOperator(const Goal& goal, const Agenda& rest);
  bool TryNode(const Goal& goal, ir::Node* node, bool swapped,
               const Agenda& rest);
  Agenda Expand(const PatternRow& row, const Goal& call, Agenda rest);

  bool BindOperands(const Goal& goal, ir::Node* node, bool swapped);
  bool BindOperand(const Goal& goal, SlotId slot, ir::Node* node, int index);
  bool BindRole(Role role, const Goal& goal, ir::Node* node, int index);
  bool CheckIsRow(const ir::Node& node, int index);
  bool BindScale(const Goal& goal, ir::Node* node, int index);
  bool BindEpsilon(ir::Node* node, int index);
  bool CheckEpsilon(const ir::Node& node, std::string_view name, double number);
  bool BindOperandsOfCall(const ir::Function& function, const NormMatch& body);
  bool BindEpsilonOfCall(const ir::Function& function, const NormMatch& body);
  bool BindLength(Role role, const ir::Node& node, int index);
  bool BindConstant(double expected, const ir::Node& node, int index);
  // Of a constant inside the norm: the nodes that will be copied with it.
  bool TakeChain(const Resolution& resolution);
  bool FollowCasts(ir::Value* from, const ir::Value* to);
  bool CheckAttributes(const PatternNode& pattern, const ir::Node& node);
  bool CheckLastAxis(const ir::Node& node);
  bool CheckFill(const std::string& expected, const ir::Node& node);
  bool CheckRankIs(const std::string& expected, const ir::Node& node);
  bool CheckRank(const Constant& constant, const ir::Value* value);
  bool CheckScaleShape(const ir::Value* scale, const ir::Value* normalised);
  bool CheckScaleLength(const ir::Value& scale, const ir::Dimension& length);

  bool Accept(ir::Value* y);
  ir::Value* TakeTrailingCasts(ir::Value* y);
  bool CheckCopyable(const ir::Node& node);
  bool CheckEpsilonAttribute(const ir::Node& node,
                             const ir::Attribute& attribute);
  bool CheckInnerValues(const ir::Value* y);
  bool CheckInnerValue(const ir::Value& value, const ir::Node& node);
  void FindShared();
  bool IsNeededOutside(const ir::Value& value) const;
  bool CheckShared(const ir::Node& cast);
  bool CheckNarrowed(const ir::Node& cast);
  bool CheckWidened(const ir::Node& cast);
  bool FailOfReaders(const ir::Value& value);
  bool IsCastOfX(const ir::Node& node) const;
  ir::Node* TrailingCast(const ir::Value& y) const;
  void TakeIdentitiesOfTypes();
  bool IsIdentity(const ir::Node* node) const;
  const ir::Value* StripIdentities(const ir::Value* value) const;
  // x, or a value made inside.
  bool IsOfNorm(const ir::Value& value) const;

  // Without `most`, all; else no more than it and one, in any order.
  std::vector<ir::Node*> ReadersThroughCasts(ir::Value* value,
                                             size_t most = SIZE_MAX) const;
  // Nodes that the goal may be: readers of what is bound.
  std::vector<ir::Node*> Candidates(const Goal& goal, ir::Value* bound,
                                    const Agenda& rest) const;
  std::optional<size_t> RankOf(const ir::Value* value);
  const std::optional<ir::Shape>& ShapeOfX();
  NormMatch Failed();
  Mark Save() const {
    return {slots_.size(), operators_.size(), casts_.size(), tags_.size(),
            result_};
  }
  void Undo(const Mark& mark);
  bool IsInner(const ir::Node* node) const {
    return Contains(operators_, node) || Contains(casts_, node);
  }
  // A shared Cast stays outside, and so does what it reads.
  bool IsOutside(const ir::Node* node) const {
    return !IsInner(node) || Contains(result_.shared, node);
  }

  // A condition failed. Recorded if no other did at a greater depth, or at this
  // one. Always false.
  template <typename... Args>
  bool Fail(fmt::format_string<Args...> format, Args&&... args) {
    return Record({.depth = operators_.size(),
                   .is_condition = true,
                   .text = fmt::format(format, std::forward<Args>(args)...),
                   .value = nullptr,
                   .expected = {}});
  }
  // No reader of the value has that operator, or none takes this scale: a
  // weaker reason at the same depth, for the graph may be spelled as another
  // row.
  bool FailExpecting(const ir::Value& value, const std::string& op);
  // How many of the matched operators lead to the value: a reader of x beside
  // the norm is not deep, however much has matched.
  size_t DepthOf(const ir::Value& value) const;
  // Sorted; a reader behind Casts is "Mul after Cast".
  std::vector<std::string> DescribeReaders(const ir::Value& value) const;
  template <typename... Args>
  bool FailWeakly(fmt::format_string<Args...> format, Args&&... args) {
    return Record({.depth = operators_.size(),
                   .is_condition = false,
                   .text = fmt::format(format, std::forward<Args>(args)...),
                   .value = nullptr,
                   .expected = {}});
  }
  struct Failure {
    size_t depth = 0;
    bool is_condition = false;
    std::string text;
    const ir::Value* value = nullptr;  // its readers are not as expected
    std::vector<std::string> expected;
  };
  bool Record(Failure failure);

  ir::Model& model_;
  Constants& constants_;
  ir::Node* head_;
  ir::Graph* graph_;
  bool is_callee_;
  RowsOf rows_;

  std::vector<Slot> slots_;
  std::vector<ir::Node*> operators_;
  std::vector<ir::Node*> casts_;
  std::vector<std::string_view> tags_;
  NormMatch result_;

  std::optional<Failure> failure_;
  bool with_scale_ = true;
  bool needs_type_ = false;
  bool uses_type_ = false;
};

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_NORM_SEARCH_H_
