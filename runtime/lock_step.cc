// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/lock_step.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/status_macros.h"

namespace addnorm::runtime {
namespace {

absl::Status InModel(std::string_view model, const absl::Status& status) {
  if (status.ok()) return status;
  return {status.code(),
          fmt::format("{}: {}", model, std::string(status.message()))};
}

}  // namespace

struct LockStep::State {
  Executor::Frame a, b;
  Sharing sharing;
  size_t next_step_of_a = 0;
  // By slot of B: what A has for the value, until B comes to it.
  std::vector<Tensor> expected;
  // By slot of B: the value differs from A's, or A has none.
  std::vector<bool> differs;
  LockStepResult result;
};

LockStep::LockStep(Executor& a, Executor& b, const Twins& twins)
    : a_(a), b_(b), twins_(twins) {
  for (size_t i = 0; i < a.plan().steps.size(); ++i)
    place_in_a_[a.plan().steps[i].node] = i;
  for (const Step& step : b.plan().steps) {
    for (const ir::Value* output : step.node->outputs()) {
      const ir::Value* expected = ExpectedOf(output);
      if (expected != nullptr)
        waiting_[expected].push_back(b.plan().slot(output));
    }
  }
}

const ir::Value* LockStep::TwinOf(const ir::Value* value) const {
  const auto it = twins_.values.find(value);
  return it == twins_.values.end() ? nullptr : it->second;
}

const ir::Value* LockStep::ExpectedOf(const ir::Value* value) const {
  if (const ir::Value* twin = TwinOf(value)) return twin;
  const auto it = twins_.counterparts.find(value);
  return it == twins_.counterparts.end() ? nullptr : it->second;
}

bool LockStep::IsShared(const State& state, const Step& step) const {
  if (state.sharing == Sharing::kWeights || twins_.own.contains(step.node))
    return false;
  for (const ir::Value* output : step.node->outputs()) {
    if (output != nullptr && TwinOf(output) == nullptr) return false;
  }
  for (const Slot slot : step.inputs) {
    if (slot != kNoSlot && state.differs[slot]) return false;
  }
  for (const auto& graph : step.subgraphs) {
    for (const auto& [value, slot] : graph->captures) {
      if (state.differs[b_.plan().slot(value)]) return false;
    }
  }
  return true;
}

// Runs A until it has made what is expected of the step's results.
absl::Status LockStep::AdvanceA(State& state, const Step& step_of_b) {
  size_t end = 0;
  for (const ir::Value* output : step_of_b.node->outputs()) {
    const ir::Value* expected = ExpectedOf(output);
    if (expected == nullptr || expected->producer() == nullptr) continue;
    end = std::max(end, place_in_a_.at(expected->producer()) + 1);
  }
  while (state.next_step_of_a < end) {
    const Step& step = a_.plan().steps[state.next_step_of_a++];
    RETURN_IF_ERROR(InModel("A", a_.RunStep(state.a, step)));
    ++state.result.a_nodes;
    HandOver(state, step);
  }
  return absl::OkStatus();
}

// What A has just made, to those slots of B that wait for it.
void LockStep::HandOver(State& state, const Step& step_of_a) {
  for (size_t i = 0; i < step_of_a.outputs.size(); ++i) {
    const auto slots = waiting_.find(step_of_a.node->outputs()[i]);
    if (slots == waiting_.end()) continue;
    for (const Slot slot : slots->second)
      state.expected[slot] = state.a.values[step_of_a.outputs[i]];
  }
}

bool LockStep::TakeFromA(State& state, const Step& step) {
  if (!IsShared(state, step)) return false;
  for (const Slot slot : step.outputs) {
    // Nobody in A reads it, so it is gone.
    if (slot != kNoSlot && state.expected[slot].is_absent()) return false;
  }
  for (const Slot slot : step.outputs) {
    if (slot != kNoSlot)
      state.b.values[slot] = std::exchange(state.expected[slot], Tensor());
  }
  for (const Slot slot : step.dying) state.b.values[slot] = Tensor();
  return true;
}

// A weight that both have is in memory once.
absl::Status LockStep::ShareConstants(State& state, const Step& step) {
  for (const ir::Value* input : step.node->inputs()) {
    const ir::Value* twin = TwinOf(input);
    if (twin == nullptr) continue;
    const Slot slot = b_.plan().slot(input);
    const Slot slot_of_a = a_.plan().slot(twin);
    if (slot == kNoSlot || slot_of_a == kNoSlot ||
        !state.b.values[slot].is_absent() ||
        !a_.plan().initializers.contains(slot_of_a))
      continue;
    ASSIGN_OR_RETURN(state.b.values[slot], a_.Read(state.a, slot_of_a));
  }
  return absl::OkStatus();
}

absl::Status LockStep::RunStepOfB(State& state, const Step& step) {
  RETURN_IF_ERROR(ShareConstants(state, step));
  RETURN_IF_ERROR(InModel("B", b_.RunStep(state.b, step)));
  ++state.result.b_nodes;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const Slot slot = step.outputs[i];
    if (slot == kNoSlot) continue;
    const Tensor expected = std::exchange(state.expected[slot], Tensor());
    state.differs[slot] = true;
    // Not alive any more: nobody reads it, so it can differ.
    if (expected.is_absent() || state.b.values[slot].is_absent()) continue;
    const ir::Value* value = step.node->outputs()[i];
    ValueComparison own{value, ExpectedOf(value), TwinOf(value) != nullptr,
                        Compare(expected, state.b.values[slot])};
    state.differs[slot] = !own.comparison.is_equal();
    state.result.own.push_back(std::move(own));
  }
  return absl::OkStatus();
}

absl::Status LockStep::CompareOutputs(State& state) {
  for (size_t i = 0; i < b_.plan().outputs.size(); ++i) {
    const Slot slot_of_a = a_.plan().outputs[i];
    const Slot slot_of_b = b_.plan().outputs[i];
    ASSIGN_OR_RETURN(const Tensor a, a_.Read(state.a, slot_of_a));
    ASSIGN_OR_RETURN(const Tensor b, b_.Read(state.b, slot_of_b));
    state.result.outputs.push_back(Compare(a, b));
  }
  return absl::OkStatus();
}

absl::StatusOr<LockStepResult> LockStep::Run(const std::vector<Tensor>& inputs,
                                             Sharing sharing) {
  ASSIGN_OR_RETURN(Executor::Frame a, a_.Begin(inputs));
  ASSIGN_OR_RETURN(Executor::Frame b, b_.Begin(inputs));
  State state{std::move(a), std::move(b), sharing, 0, {}, {}, {}};
  state.expected.resize(b_.plan().slots.size());
  state.differs.resize(b_.plan().slots.size());
  for (const Step& step : b_.plan().steps) {
    RETURN_IF_ERROR(AdvanceA(state, step));
    if (TakeFromA(state, step)) continue;
    RETURN_IF_ERROR(RunStepOfB(state, step));
  }
  while (state.next_step_of_a < a_.plan().steps.size()) {
    const Step& step = a_.plan().steps[state.next_step_of_a++];
    RETURN_IF_ERROR(InModel("A", a_.RunStep(state.a, step)));
    ++state.result.a_nodes;
  }
  RETURN_IF_ERROR(CompareOutputs(state));
  return std::move(state.result);
}

}  // namespace addnorm::runtime
