// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Matches the RMSNorm spellings of rms_norm_variants.cc from the value that the
// norm reads. Pure: nothing is changed.
//
// The search walks rows and operators together, trying each alternative and
// each operand order, and remembers the deepest condition that failed. Casts
// between two steps belong to the match. It decides what a norm is; whether an
// Add may be fused with it is fuse_add_rms_norm.cc's question.
//
//   Matcher matcher(model, constants);
//   NormMatch match = matcher.MatchFrom(pow_node);
//   if (!match.found()) Explain(match.reason);
#ifndef ADDNORM_PASSES_MATCHER_H_
#define ADDNORM_PASSES_MATCHER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "passes/constants.h"
#include "passes/ir/model.h"

namespace addnorm::passes {

// One operand of one node.
struct Operand {
  const ir::Node* node = nullptr;
  int index = 0;
  friend bool operator==(const Operand&, const Operand&) = default;
};

struct NormMatch {
  ir::Value* x = nullptr;  // what the norm reads, Casts and Identities stripped
  ir::Value* y = nullptr;  // its result; nullptr if nothing matched

  // The operators and the Casts between them, the first-matched first.
  std::vector<ir::Node*> nodes;
  // Those of `nodes` that others read too: copied into the body, kept outside.
  std::vector<ir::Node*> shared;

  ir::Value* scale = nullptr;  // nullptr for a norm without weight
  Operand scale_operand;
  // Epsilon is an operand of a node, or an attribute of one, or neither: there
  // is none, or a called function keeps it to itself.
  Operand epsilon_operand;
  std::optional<Constant> epsilon;  // the constant, where known
  const ir::Node* epsilon_node = nullptr;
  std::string epsilon_attribute;
  std::string variant;  // tags of the rows: "mul_reciprocal"

  std::string reason;  // the deepest condition that failed, if nothing matched
  size_t depth = 0;    // how many operators had matched there
  // The reason is only that the graph goes on in another way than any spelling.
  bool is_unspecific = false;
  bool needs_type =
      false;  // an unknown type or shape stood in the way somewhere
  bool uses_type = false;       // another type of x could give another answer
  bool is_called_norm = false;  // a call of a function whose body is a norm

  bool found() const { return y != nullptr; }
};

// What is known of a value that is normed.
struct RowsOf {
  ir::TensorType type;
  std::optional<int64_t> length;  // of the last axis
  // The file gives a sum another rank or row length than its operands have, as
  // stale value_info does: no shape counts then.
  bool is_contradicted = false;

  // A sum's rows are as long as those of either operand, if these are longer
  // than 1: broadcasting cannot make them longer.
  RowsOf(const ir::Model& model, const ir::Value& value);
};

class Matcher {
 public:
  Matcher(ir::Model& model, Constants& constants)
      : model_(model), constants_(constants) {}

  // True if some row begins with this operator, reading one value, or if it is
  // a call of a local function, which may be a norm.
  bool IsHead(const ir::Node& node) const;

  // The norm whose first operator is `head`.
  NormMatch MatchFrom(ir::Node* head);
  // The same without its weight, where the weight cannot be an operand.
  NormMatch MatchUnscaledFrom(ir::Node* head);

 private:
  // A call being looked into, within the one that led there.
  struct Frame {
    const ir::Node* call = nullptr;
    const ir::Function* function = nullptr;
    const Frame* outer = nullptr;
    int depth = 0;
  };
  NormMatch MatchCall(ir::Node* call, const Frame* outer);
  // The norm that the body is, from one of its inputs to its output.
  NormMatch MatchBody(const Frame& frame);
  // Of a value in the frame's body: its own, or what its calls say.
  RowsOf Rows(const ir::Value& value, const Frame* frame) const;

  ir::Model& model_;
  Constants& constants_;
  // Functions that are no norms, whatever the types of a call's operands.
  absl::flat_hash_set<const ir::Function*> no_norms_;
  // Bodies that may still be looked into from one head, as calls can branch.
  int bodies_left_ = 0;
};

// The value before Casts, CastLikes and Identities of the same graph.
ir::Value* StripCasts(ir::Value* value);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_MATCHER_H_
