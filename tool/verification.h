// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Is B exactly A? Three layers: structure (for all inputs), kernels against
// bodies (for rows of all kinds), and both models run side by side. Nothing is
// printed here; verify_report.h does that.
//
//   ASSIGN_OR_RETURN(Verification done, Verify(a, b, request));
//   done.verdict == Verdict::kProven;
#ifndef ADDNORM_TOOL_VERIFICATION_H_
#define ADDNORM_TOOL_VERIFICATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/structure.h"
#include "runtime/lock_step.h"
#include "tool/fusion.h"
#include "tool/kernel_check.h"
#include "tool/run_inputs.h"

namespace addnorm::tool {

enum class Verdict {
  kProven,       // the structure holds: equal for all inputs
  kEqualOnRuns,  // the structure differs or could not be compared; all words
                 // that were compared are equal
  kDifferent,
  kNotComparable
};
std::string_view Name(Verdict verdict);  // "equal on what was run"

struct VerifyRequest {
  InputRequest inputs = {};
  int rounds = 3;
  int threads = 1;
  bool structure_only = false;
};

// One pair of runs.
struct Round {
  uint64_t seed = 0;
  double scale = 1;  // of generated floats
  std::vector<ChosenDim> dims;
  runtime::LockStepResult result;
};

// The first round once more, with nothing shared but weights, which are
// compared again: B computes all of it itself, so that a proof that is wrong
// cannot hide what it says is equal.
struct ApartRound {
  // "" if it was run; else why it was not.
  std::string reason;
  int64_t b_nodes = 0;
  // Of all values of B that A has too.
  runtime::Comparison difference;
};

struct Verification {
  Verdict verdict = Verdict::kNotComparable;
  // "" where the layer ran; else why it did not, or why it shows less.
  std::string structure_reason, kernels_reason, run_reason;
  // The way out of the run's reason, "" where none is known.
  std::string run_hint;
  // A node of B failed on values that A computes.
  bool only_b_fails = false;
  passes::Structure structure;
  KernelCheck kernels;
  std::vector<Round> rounds;
  ApartRound apart;
  std::vector<std::string> output_names;  // of B
  // Of outputs and of results of B's own nodes, all rounds together; the round
  // apart has its own.
  runtime::Comparison difference;
  // Where values first differ, in B's order: a place in B, and what is there.
  std::string first_place;
  runtime::Comparison first;
  const ir::Value* first_value = nullptr;     // of B
  const ir::Value* first_expected = nullptr;  // of A
  int first_round = 0;

  // Equal but for payloads of NaN: by swapped operands, or as the runs showed.
  bool has_nan_note() const {
    return !structure.swaps.empty() || difference.nan_payloads > 0 ||
           apart.difference.nan_payloads > 0;
  }
  // False without rounds, and where all that they compared is empty.
  bool has_words() const { return difference.elements > 0; }
  bool is_equal_on_runs() const {
    return difference.is_equal() && apart.difference.is_equal();
  }
};

// Without b, a is compared with itself run node by node: its fused ops with
// their bodies. Errors only where nothing can be said at all: of the file
// system, and for outputs that nothing makes.
absl::StatusOr<Verification> Verify(const LoadedModel& a, const LoadedModel* b,
                                    const VerifyRequest& request);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_VERIFICATION_H_
