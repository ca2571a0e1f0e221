// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_plan.h"

#include <algorithm>
#include <utility>

namespace addnorm::runtime {

using BufferKind = PlannedValue::Buffer;

void MemoryPlan::Attach(Executor& executor) {
  meter_ = &executor.memory();
  const GraphPlan& plan = executor.plan();
  graph_ = plan.graph;
  values_.resize(plan.slots.size());
  places_.resize(plan.slots.size());
  for (const auto& [value, slot] : plan.slots) values_[slot] = value;
}

bool MemoryPlan::IsOutside(const ir::Value* value) const {
  return value->initializer() != nullptr ||
         (value->is_input() && value->graph() == graph_);
}

bool MemoryPlan::IsConstant(const Step& step, const Tensor& output) const {
  return step.inputs.empty() && step.subgraphs.empty() &&
         step.function == nullptr &&
         meter_->peak() - before_ < output.byte_size();
}

void MemoryPlan::BeforeNode(const Step& step,
                            std::span<const Tensor> operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    const ir::Value* value = step.node->input(i);
    if (value != nullptr && IsOutside(value))
      outside_.emplace(operands[i].data<void>(), value);
  }
  if (is_composite_.empty()) {
    before_ = meter_->current();
    meter_->ResetPeak();
  }
  is_composite_.push_back(false);
}

int MemoryPlan::DyingValues(const Step& step, const void* buffer) const {
  return static_cast<int>(
      std::count_if(step.dying.begin(), step.dying.end(),
                    [&](Slot slot) { return places_[slot].buffer == buffer; }));
}

PlannedValue MemoryPlan::PlanOutput(const Step& step, size_t i,
                                    const Tensor& tensor) {
  const Slot slot = i < step.outputs.size() ? step.outputs[i] : kNoSlot;
  PlannedValue planned{.value = slot == kNoSlot ? nullptr : values_[slot],
                       .type = tensor.type(),
                       .dims = tensor.dims(),
                       .bytes = tensor.byte_size()};
  const void* pointer = tensor.data<void>();
  if (const auto it = outside_.find(pointer); it != outside_.end()) {
    planned.buffer = BufferKind::kOutside;
    planned.from = it->second;
    if (slot != kNoSlot) places_[slot] = {nullptr, planned.bytes};
    return planned;
  }
  const auto [it, is_fresh] = buffers_.try_emplace(pointer);
  Buffer& buffer = it->second;
  if (!is_fresh) {
    planned.from = buffer.last;
    planned.buffer = DyingValues(step, pointer) == buffer.values
                         ? BufferKind::kTakenOver
                         : BufferKind::kShared;
  }
  if (is_fresh && IsConstant(step, tensor)) {
    // It may die and its address be given out again, so it has a place here.
    planned.buffer = BufferKind::kOutside;
  } else if (is_fresh || planned.buffer == BufferKind::kTakenOver) {
    // Another size: its memory was freed inside the step and given out again.
    live_ += planned.bytes - buffer.bytes;
    buffer.bytes = planned.bytes;
  }
  if (slot == kNoSlot) {
    if (is_fresh) {
      live_ -= buffer.bytes;
      buffers_.erase(it);
    }
    return planned;
  }
  ++buffer.values;
  buffer.last = values_[slot];
  places_[slot] = {pointer, planned.bytes};
  return planned;
}

void MemoryPlan::SetPeaks(PlannedStep& planned, bool is_composite) {
  size_t fresh = 0, outputs = 0, named = 0;
  for (const PlannedValue& output : planned.outputs) {
    outputs += output.bytes;
    if (output.value != nullptr) named += output.bytes;
    if (output.buffer == BufferKind::kFresh) fresh += output.bytes;
  }
  const size_t growth = meter_->peak() - before_;
  planned.inside = growth - std::min(growth, fresh);
  // What dies inside a step with steps of its own makes room for its outputs.
  planned.peak += is_composite ? growth : std::max(growth, fresh);
  peaks_.measured = std::max(peaks_.measured, meter_->peak());
  peaks_.planned = std::max(peaks_.planned, planned.peak);
  peaks_.lifetime =
      std::max(peaks_.lifetime, live_fresh_ + outputs + planned.inside);
  live_fresh_ += named;
  if (!is_composite) most_inside_ = std::max(most_inside_, planned.inside);
  peaks_.kept = kept_ + most_inside_;
}

void MemoryPlan::AfterNode(const Step& step, std::span<const Tensor> outputs) {
  const bool is_composite = is_composite_.back();
  is_composite_.pop_back();
  // Branches and functions hand on what steps inside them made; loops stack it.
  const bool hands_on = step.function != nullptr || step.node->Is("", "If");
  if (!is_composite || !hands_on) {
    for (const Tensor& output : outputs) kept_ += output.byte_size();
  }
  if (!is_composite_.empty()) {
    is_composite_.back() = true;
    return;
  }
  PlannedStep& planned = steps_.emplace_back();
  planned.node = step.node;
  planned.peak = live_;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_absent())
      planned.outputs.push_back(PlanOutput(step, i, outputs[i]));
  }
  SetPeaks(planned, is_composite);
  for (const Slot slot : step.dying) {
    if (!IsOutside(values_[slot])) planned.dying.push_back(values_[slot]);
    Release(slot);
  }
  planned.after = live_;
}

void MemoryPlan::Release(Slot slot) {
  const Place place = std::exchange(places_[slot], {});
  live_fresh_ -= place.bytes;
  const auto it = buffers_.find(place.buffer);
  if (place.buffer == nullptr || it == buffers_.end()) return;
  if (--it->second.values > 0) return;
  live_ -= it->second.bytes;
  buffers_.erase(it);
}

}  // namespace addnorm::runtime
