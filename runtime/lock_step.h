// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs two models side by side on the same inputs and compares them by bits,
// value by value, at little more than the cost of one.
//
// What both compute the same way from equal values is computed once, by A. B
// runs only what is its own: nodes that are marked, or that A has no twin of,
// and whatever depends on a value that turned out different. It decides nothing
// about structure; the caller says which values are twins. If the caller is
// wrong, sharing hides it; a run apart, in which B computes all itself, does
// not.
//
//   LockStep lock_step(*a, *b, twins);
//   ASSIGN_OR_RETURN(LockStepResult result, lock_step.Run(inputs));
#ifndef ADDNORM_RUNTIME_LOCK_STEP_H_
#define ADDNORM_RUNTIME_LOCK_STEP_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "passes/ir/graph.h"
#include "runtime/compare.h"
#include "runtime/executor.h"

namespace addnorm::runtime {

struct Twins {
  // From values of B's main graph to those of A's that are computed alike.
  absl::flat_hash_map<const ir::Value*, const ir::Value*> values;
  // Likewise, of values that need not be equal, for the report alone.
  absl::flat_hash_map<const ir::Value*, const ir::Value*> counterparts = {};
  // Nodes of B's main graph that B is to run itself, twins or not.
  absl::flat_hash_set<const ir::Node*> own;
};

enum class Sharing {
  kTwins,
  kWeights  // nothing that is computed
};

// What came of a value that B computed itself.
struct ValueComparison {
  const ir::Value* value = nullptr;     // of B
  const ir::Value* expected = nullptr;  // of A
  bool are_twins = true;                // else counterparts
  Comparison comparison;
};

struct LockStepResult {
  // By output of the models; shared ones are equal without a look.
  std::vector<Comparison> outputs;
  // Results of B's own nodes that have twins or counterparts, in B's order.
  std::vector<ValueComparison> own;
  // Nodes that A and B ran.
  int64_t a_nodes = 0, b_nodes = 0;
};

class LockStep {
 public:
  // The two must outlive it; the models have the same inputs and outputs.
  LockStep(Executor& a, Executor& b, const Twins& twins);

  // Errors are those of the nodes, "A: …" or "B: …".
  absl::StatusOr<LockStepResult> Run(const std::vector<Tensor>& inputs,
                                     Sharing sharing = Sharing::kTwins);

 private:
  struct State;

  absl::Status AdvanceA(State& state, const Step& step_of_b);
  void HandOver(State& state, const Step& step_of_a);
  // True if B's results are A's.
  bool TakeFromA(State& state, const Step& step);
  bool IsShared(const State& state, const Step& step) const;
  absl::Status ShareConstants(State& state, const Step& step);
  absl::Status RunStepOfB(State& state, const Step& step);
  absl::Status CompareOutputs(State& state);
  const ir::Value* TwinOf(const ir::Value* value) const;
  // The twin, else the counterpart.
  const ir::Value* ExpectedOf(const ir::Value* value) const;

  Executor& a_;
  Executor& b_;
  const Twins& twins_;
  // From values of A to the slots of B that wait for them.
  absl::flat_hash_map<const ir::Value*, std::vector<Slot>> waiting_;
  // The place of each node of A among its steps.
  absl::flat_hash_map<const ir::Node*, size_t> place_in_a_;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_LOCK_STEP_H_
