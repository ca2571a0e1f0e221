// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/verification.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "passes/fused_op.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/infer_types.h"
#include "proto/node_signatures.h"
#include "tool/constant_difference.h"
#include "tool/exit_code.h"
#include "tool/output.h"
#include "tool/report.h"
#include "tool/structure_check.h"

namespace addnorm::tool {
namespace {

using runtime::Comparison;
using runtime::Executor;

// Rows so small that epsilon counts as much as the mean of their squares.
constexpr double kSmallScale = 0x1p-10;
// CPU time, which does not depend on what else the machine does. A first round
// that takes more is not run once more, apart: it would double the cost.
constexpr double kCheapSeconds = 0.1;
constexpr int kOtherSizeRound = 1;
constexpr int kSmallRound = 2;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

// A node of B failed on values that A computes; its operator is there.
bool IsFailureOfB(const absl::Status& status) {
  return !absl::IsUnimplemented(status) && Message(status).rfind("B: ", 0) == 0;
}

// What says something of the models, and no more than that a layer cannot be
// run. The rest is the file system, memory, a signal, our own bugs.
bool IsOfModel(const absl::Status& status) {
  return ToExitCode(status.code()) == ExitCode::kModel;
}

// True if the node is, or has somewhere in it, a call of a fused op.
bool HoldsFusedOp(const ir::Model& model, const ir::Node& node,
                  absl::flat_hash_set<const ir::Function*>& seen) {
  if (node.domain() == passes::kFusedDomain) return true;
  const auto any = [&](const ir::Graph& graph) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                       [&](const ir::Node& inner) {
                         return HoldsFusedOp(model, inner, seen);
                       });
  };
  for (const ir::Graph* graph : node.subgraphs()) {
    if (any(*graph)) return true;
  }
  const ir::Function* function =
      model.FindFunction(node.domain(), node.op_type(), node.overload);
  return function != nullptr && seen.insert(function).second &&
         any(function->body);
}

runtime::Twins MakeTwins(const ir::Model& b,
                         const passes::Structure& structure) {
  runtime::Twins twins;
  twins.values = structure.twins;
  twins.counterparts = structure.counterparts;
  for (const ir::Node& node : b.graph.nodes()) {
    absl::flat_hash_set<const ir::Function*> seen;
    if (HoldsFusedOp(b, node, seen)) twins.own.insert(&node);
  }
  return twins;
}

std::string PlaceOf(const runtime::ValueComparison& own) {
  std::string place =
      fmt::format("{}, value '{}'", own.value->producer()->Describe(),
                  ir::Printable(own.value->name()));
  if (own.expected->name() != own.value->name())
    place += fmt::format(" (A: '{}')", ir::Printable(own.expected->name()));
  return place;
}

// The dims of a second size: what was a default grows, batches and what is
// absent stay.
DimValues OtherDims(const std::vector<ChosenDim>& dims, DimValues given) {
  for (const ChosenDim& dim : dims) {
    const DimRole role = RoleOf(dim.symbol);
    if (dim.origin != "default" || dim.value < 2 || role == DimRole::kTotal ||
        role == DimRole::kOther)
      continue;
    given[dim.symbol] = 2 * dim.value - 3;
  }
  return given;
}

class Verifier {
 public:
  Verifier(const LoadedModel& a, const LoadedModel& b,
           const VerifyRequest& request, Verification& result)
      : a_(a), b_(b), request_(request), result_(result) {}

  // Errors are none of the models.
  absl::Status CompareStructures(bool is_itself);
  absl::Status CompareKernels();
  absl::Status CompareRuns();
  absl::Status CheckRequest();
  Verdict Decide() const;

 private:
  absl::StatusOr<RunInputs> FirstInputs();
  absl::Status RunRounds();
  absl::Status RunRound(runtime::LockStep& lock_step, int round);
  absl::Status RunApart(Executor& a, Executor& b, const runtime::Twins& twins);
  void Summarise(const runtime::LockStepResult& ran, int round,
                 Comparison& difference);

  const LoadedModel& a_;
  const LoadedModel& b_;
  const VerifyRequest& request_;
  Verification& result_;
  double cpu_seconds_ = 0;  // of the first round
  std::optional<RunInputs> first_inputs_;
};

absl::Status Verifier::CompareStructures(bool is_itself) {
  absl::StatusOr<passes::Structure> structure = CheckStructure(a_, b_);
  if (structure.ok()) {
    result_.structure = *std::move(structure);
    ConstantDifferences(a_, b_).Describe(result_.structure.differences);
  } else if (IsOfModel(structure.status())) {
    result_.structure_reason = Message(structure.status());
  } else {
    return structure.status();
  }
  if (!is_itself) return absl::OkStatus();
  for (const ir::Value* value : a_.model->graph.values())
    result_.structure.twins[value] = value;
  return absl::OkStatus();
}

absl::Status Verifier::CompareKernels() {
  FusedCalls found = FusedCallsOf(*b_.model);
  if (found.unknown > 0) {
    // What it does not find stays unknown.
    proto::InferTypes(*b_.file, *b_.model).IgnoreError();
    found = FusedCallsOf(*b_.model);
  }
  absl::StatusOr<KernelCheck> check =
      CheckKernels(*b_.model, found.kinds, request_.inputs.seed);
  if (!check.ok()) {
    result_.kernels_reason = Message(check.status());
    return IsOfModel(check.status()) ? absl::OkStatus() : check.status();
  }
  result_.kernels = *std::move(check);
  result_.kernels.calls_left_out = found.unknown;
  if (found.calls == 0) {
    result_.kernels_reason = "there is no fused op";
  } else if (found.kinds.empty()) {
    result_.kernels_reason =
        fmt::format("types or row length are not known ({} of fused ops)",
                    Plural(found.calls, "call"));
  }
  return absl::OkStatus();
}

void Verifier::Summarise(const runtime::LockStepResult& ran, int round,
                         Comparison& difference) {
  const auto see = [&](const Comparison& comparison, const ir::Value* value,
                       const ir::Value* expected, const std::string& place) {
    if (!result_.first_place.empty() || comparison.is_equal()) return;
    result_.first_place = place;
    result_.first = comparison;
    result_.first_value = value;
    result_.first_expected = expected;
    result_.first_round = round;
  };
  for (const runtime::ValueComparison& own : ran.own) {
    see(own.comparison, own.value, own.expected, PlaceOf(own));
    if (own.are_twins) difference.Add(own.comparison);
  }
  for (size_t i = 0; i < ran.outputs.size(); ++i) {
    const ir::Value* output = b_.model->graph.outputs()[i];
    see(ran.outputs[i], output, a_.model->graph.outputs()[i],
        fmt::format("output '{}'", ir::Printable(output->name())));
    difference.Add(ran.outputs[i]);
  }
  // Counterparts that differ without a consequence are no difference.
  if (result_.is_equal_on_runs()) {
    result_.first_place.clear();
    result_.first_value = nullptr;
  }
}

// Those that were asked for: read or made once.
absl::StatusOr<RunInputs> Verifier::FirstInputs() {
  if (!first_inputs_) {
    ASSIGN_OR_RETURN(first_inputs_, GatherInputs(*a_.model, request_.inputs));
  }
  return *first_inputs_;
}

// Inputs that were asked for and cannot be are the caller's mistake, but for
// those that cannot be run in any case.
absl::Status Verifier::CheckRequest() {
  if (request_.inputs.folder.empty() && request_.inputs.dims.empty())
    return absl::OkStatus();
  const absl::Status status = FirstInputs().status();
  return absl::IsUnimplemented(status) ? absl::OkStatus() : status;
}

absl::Status Verifier::RunRound(runtime::LockStep& lock_step, int round) {
  InputRequest inputs = request_.inputs;
  inputs.seed += static_cast<uint64_t>(round);
  if (round == kOtherSizeRound)
    inputs.dims = OtherDims(result_.rounds[0].dims, inputs.dims);
  if (round == kSmallRound) inputs.scale = kSmallScale;
  ASSIGN_OR_RETURN(
      const RunInputs gathered,
      round == 0 ? FirstInputs() : GatherInputs(*a_.model, inputs));
  Round done{inputs.seed, inputs.scale, gathered.dims, {}};
  const std::clock_t start = std::clock();
  absl::StatusOr<runtime::LockStepResult> ran = lock_step.Run(gathered.tensors);
  result_.run_hint = GuessHint(ran.status(), gathered.dims);
  RETURN_IF_ERROR(ran.status());
  done.result = *std::move(ran);
  if (round == 0)
    cpu_seconds_ = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  Summarise(done.result, round, result_.difference);
  result_.rounds.push_back(std::move(done));
  return absl::OkStatus();
}

absl::Status Verifier::RunApart(Executor& a, Executor& b,
                                const runtime::Twins& twins) {
  if (twins.values.empty()) {
    result_.apart.reason = "nothing was shared";
    return absl::OkStatus();
  }
  if (cpu_seconds_ > kCheapSeconds) {
    result_.apart.reason = fmt::format(
        "the first round took more than {} s of CPU", kCheapSeconds);
    return absl::OkStatus();
  }
  runtime::Twins checked = twins;
  RETURN_IF_ERROR(KeepEqualWeights(a_, b_, checked.values));
  ASSIGN_OR_RETURN(const RunInputs gathered, FirstInputs());
  runtime::LockStep lock_step(a, b, checked);
  ASSIGN_OR_RETURN(const runtime::LockStepResult ran,
                   lock_step.Run(gathered.tensors, runtime::Sharing::kWeights));
  Summarise(ran, 0, result_.apart.difference);
  result_.apart.b_nodes = ran.b_nodes;
  return absl::OkStatus();
}

absl::Status Verifier::RunRounds() {
  for (const auto& [name, model] : {std::pair("A", &a_), {"B", &b_}}) {
    RETURN_IF_ERROR(
        proto::WithContext(proto::CheckNodeSignatures(*model->model), name));
  }
  const runtime::Twins twins = MakeTwins(*b_.model, result_.structure);
  ASSIGN_OR_RETURN(const auto a,
                   Executor::Create(*a_.model, {.threads = request_.threads,
                                                .row_kernels = false}));
  ASSIGN_OR_RETURN(const auto b,
                   Executor::Create(*b_.model, {.threads = request_.threads}));
  runtime::LockStep lock_step(*a, *b, twins);
  // Files are the same in each round.
  const int rounds = request_.inputs.folder.empty() ? request_.rounds : 1;
  for (int round = 0; round < rounds; ++round) {
    const absl::Status status = RunRound(lock_step, round);
    if (status.ok()) continue;
    // A second size may be one that the model does not take.
    if (round != kOtherSizeRound || !IsOfModel(status)) return status;
    result_.run_reason = fmt::format("second size: {}", Message(status));
  }
  return RunApart(*a, *b, twins);
}

absl::Status Verifier::CompareRuns() {
  if (a_.model->graph.outputs().size() != b_.model->graph.outputs().size() ||
      a_.model->graph.inputs().size() != b_.model->graph.inputs().size()) {
    result_.run_reason = "inputs or outputs differ in number";
    return absl::OkStatus();
  }
  const absl::Status status = RunRounds();
  if (status.ok() && !result_.has_words() &&
      result_.difference.mismatch.empty())
    result_.run_reason = "nothing was compared: the outputs have no elements";
  if (!IsOfModel(status)) return status;
  const Failure failure = ToFailure(status);
  result_.run_reason = failure.error;
  if (!failure.hint.empty()) result_.run_hint = failure.hint;
  result_.apart.reason = "not every round could be run";
  result_.only_b_fails = IsFailureOfB(status);
  return absl::OkStatus();
}

Verdict Verifier::Decide() const {
  if (!result_.difference.is_equal_but_for_nans() ||
      !result_.apart.difference.is_equal_but_for_nans() ||
      !result_.kernels.is_equal())
    return Verdict::kDifferent;
  // Then it is not the same, whatever the structure says.
  if (result_.only_b_fails) return Verdict::kNotComparable;
  const bool is_compared = result_.structure_reason.empty();
  if (is_compared && result_.structure.is_equal()) return Verdict::kProven;
  const auto is_interface = [](const passes::StructureDifference& difference) {
    return difference.is_interface;
  };
  // Nothing can speak for equality any more.
  if (is_compared &&
      (request_.structure_only ||
       std::any_of(result_.structure.differences.begin(),
                   result_.structure.differences.end(), is_interface)))
    return Verdict::kDifferent;
  return result_.has_words() ? Verdict::kEqualOnRuns : Verdict::kNotComparable;
}

}  // namespace

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kProven:
      return "proven";
    case Verdict::kEqualOnRuns:
      return "equal on what was run";
    case Verdict::kDifferent:
      return "different";
    case Verdict::kNotComparable:
      break;
  }
  return "not comparable";
}

absl::StatusOr<Verification> Verify(const LoadedModel& a, const LoadedModel* b,
                                    const VerifyRequest& request) {
  Verification result;
  const LoadedModel& other = b == nullptr ? a : *b;
  for (const ir::Value* output : other.model->graph.outputs())
    result.output_names.push_back(output->name());
  Verifier verifier(a, other, request, result);
  RETURN_IF_ERROR(verifier.CompareStructures(/*is_itself=*/b == nullptr));
  if (request.structure_only) {
    result.kernels_reason = result.run_reason = "--structure-only";
  } else {
    RETURN_IF_ERROR(verifier.CheckRequest());
    RETURN_IF_ERROR(verifier.CompareKernels());
    RETURN_IF_ERROR(verifier.CompareRuns());
  }
  result.verdict = verifier.Decide();
  return result;
}

}  // namespace addnorm::tool
