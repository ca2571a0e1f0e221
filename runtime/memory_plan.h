// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What a run of the main graph holds in memory, step by step: which values are
// made, in whose buffer, and which die. Shapes are known only when a model
// runs, so the plan is written down by watching one run.
//
// Peaks are computed from the sizes and lifetimes; only what a step needs
// inside itself (intermediate results of its op, values of its branches,
// bodies and functions) is taken from the meter. `measured` is the meter's own
// peak, a check of all of it. Weights and inputs are not in it.
//
//   MemoryPlan plan;
//   executor = Executor::Create(model, {.observer = &plan});
//   plan.Attach(*executor);
//   executor->Run(inputs);  // then plan.peaks().planned, plan.steps()
#ifndef ADDNORM_RUNTIME_MEMORY_PLAN_H_
#define ADDNORM_RUNTIME_MEMORY_PLAN_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/executor.h"

namespace addnorm::runtime {

struct PlannedValue {
  // A buffer of its own, that of an operand that dies here, one that it has
  // together with a value that lives on, or that of a weight, a constant or an
  // input.
  enum class Buffer { kFresh, kTakenOver, kShared, kOutside };

  const ir::Value* value = nullptr;  // nullptr: the node does not name it
  ir::DataType type = ir::DataType::kUndefined;
  Dims dims;
  size_t bytes = 0;
  Buffer buffer = Buffer::kFresh;
  const ir::Value* from = nullptr;  // whose buffer it was, but for constants
};

struct PlannedStep {
  const ir::Node* node = nullptr;
  std::vector<PlannedValue> outputs;
  std::vector<const ir::Value*> dying;  // but weights and inputs
  size_t inside = 0;  // bytes beyond operands and outputs while it runs
  size_t peak = 0;    // while it runs, by the plan
  size_t after = 0;   // when what dies here is gone
};

struct MemoryPeaks {
  size_t kept = 0;      // every value in a buffer of its own until the end
  size_t lifetime = 0;  // freed at its last use, nothing taken over
  size_t planned = 0;   // and taken over where ops can
  size_t measured = 0;
};

class MemoryPlan : public RunObserver {
 public:
  // Before the run; the executor must outlive it.
  void Attach(Executor& executor);

  void BeforeNode(const Step& step, std::span<const Tensor> operands) override;
  void AfterNode(const Step& step, std::span<const Tensor> outputs) override;

  const std::vector<PlannedStep>& steps() const { return steps_; }
  const MemoryPeaks& peaks() const { return peaks_; }

 private:
  struct Buffer {
    size_t bytes = 0;
    int values = 0;  // that have it
    const ir::Value* last = nullptr;
  };
  struct Place {
    const void* buffer = nullptr;  // nullptr: none, or one of outside
    size_t bytes = 0;              // of the value
  };

  // Weights, and inputs of the main graph.
  bool IsOutside(const ir::Value* value) const;
  // A constant of the node itself, which it makes without taking memory.
  bool IsConstant(const Step& step, const Tensor& output) const;
  PlannedValue PlanOutput(const Step& step, size_t i, const Tensor& tensor);
  // Values that have the buffer and die at the step.
  int DyingValues(const Step& step, const void* buffer) const;
  void SetPeaks(PlannedStep& planned, bool is_composite);
  void Release(Slot slot);

  MemoryMeter* meter_ = nullptr;
  const ir::Graph* graph_ = nullptr;
  std::vector<const ir::Value*> values_;  // by slot
  std::vector<Place> places_;             // by slot
  absl::flat_hash_map<const void*, Buffer> buffers_;
  absl::flat_hash_map<const void*, const ir::Value*> outside_;
  std::vector<PlannedStep> steps_;
  MemoryPeaks peaks_;
  // Of the steps that run now, outer before inner: other steps ran inside.
  std::vector<bool> is_composite_;
  size_t before_ = 0;       // the meter before this step
  size_t live_ = 0;         // bytes of buffers_
  size_t live_fresh_ = 0;   // if nothing were taken over
  size_t kept_ = 0;         // if nothing were freed
  size_t most_inside_ = 0;  // of a step without steps inside
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_MEMORY_PLAN_H_
