// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a model: node after node, each as its op says. Weights are read when
// first needed and kept for further runs; values are freed at their last use,
// or handed to an op that may write over them.
//
// It is no optimiser: no node is merged, moved or left out. Calls of functions
// run the function's nodes, or the row kernel that does the same arithmetic
// (fused_calls.h).
//
//   ASSIGN_OR_RETURN(auto executor, Executor::Create(model, {.threads = 2}));
//   ASSIGN_OR_RETURN(std::vector<Tensor> outputs, executor->Run(inputs));
#ifndef ADDNORM_RUNTIME_EXECUTOR_H_
#define ADDNORM_RUNTIME_EXECUTOR_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "passes/ir/model.h"
#include "runtime/fused_calls.h"
#include "runtime/gemm.h"
#include "runtime/graph_plan.h"
#include "runtime/op.h"
#include "runtime/tensor.h"
#include "runtime/thread_pool.h"
#include "runtime/weights.h"

namespace addnorm::runtime {

// Sees each node of a run, those in subgraphs and functions too. For profiles,
// plans and comparisons.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void BeforeNode(const Step&, std::span<const Tensor> /*operands*/) {}
  // Operands that were handed over to the op are absent.
  virtual void AfterNode(const Step&, std::span<const Tensor> /*outputs*/) {}
};

struct ExecutorOptions {
  int threads = 1;
  RunObserver* observer = nullptr;  // must outlive the executor
  // Off: fused ops too are run node by node.
  bool row_kernels = true;
  // Must outlive the executor; nullptr: its weights are its own.
  WeightPool* weight_pool = nullptr;
};

class Executor {
 public:
  // The model must outlive it. kInvalidArgument where calls of functions expand
  // to so many nodes that no run would end.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      const ir::Model& model, const ExecutorOptions& options = {});

  // Inputs in the order of the graph's; an absent one is taken from its
  // initializer. Errors name the node (or input) and what is wrong.
  absl::StatusOr<std::vector<Tensor>> Run(std::vector<Tensor> inputs);

  // The same step by step, for those who do something in between: the values
  // that are alive, by slot. A constant is there once it was read.
  struct Frame {
    const GraphPlan& plan;
    const Attributes* caller = nullptr;  // of the call, in a function
    std::vector<Tensor> values = {};
  };
  absl::StatusOr<Frame> Begin(std::vector<Tensor> inputs);
  // Each step of plan().steps once, in their order.
  absl::Status RunStep(Frame& frame, const Step& step);
  // The value, read if it is a constant; absent if it is not alive.
  absl::StatusOr<Tensor> Read(const Frame& frame, Slot slot);

  // One node by itself, given its operands. Neither its attributes nor its
  // graphs may refer to what is outside of it.
  absl::StatusOr<std::vector<Tensor>> RunNode(const ir::Node& node,
                                              std::vector<Tensor> inputs);

  // In further runs; nullptr: nobody, and nothing is spent on it.
  void Observe(RunObserver* observer) { options_.observer = observer; }

  // What the first use of a library costs, for those who measure.
  void WarmUp() { PrepareGemm(threads_); }

  // Buffers of values and of intermediate results; weights are counted apart,
  // inputs are the caller's.
  MemoryMeter& memory() { return *meter_; }
  const MemoryMeter& weight_memory() const { return *weight_meter_; }
  int thread_count() const { return threads_.thread_count(); }
  const GraphPlan& plan() const { return *plan_; }

 private:
  class NodeSubgraphs;

  Executor(const ir::Model& model, const ExecutorOptions& options);

  absl::StatusOr<std::vector<Tensor>> Outputs(const Frame& frame);
  absl::Status CheckInputs(std::span<const Tensor> inputs) const;
  // `values` are those of the captures, in order.
  absl::StatusOr<std::vector<Tensor>> RunGraph(const GraphPlan& plan,
                                               std::vector<Tensor> inputs,
                                               std::vector<Tensor> captures,
                                               const Attributes* caller);
  // The node that runs, and the nodes that it is in.
  std::string PlaceText() const;
  absl::Status RunStepWithoutContext(Frame& frame, const Step& step);
  absl::StatusOr<std::vector<Tensor>> Compute(Frame& frame, const Step& step,
                                              std::vector<Tensor> inputs);
  absl::StatusOr<std::vector<Tensor>> Call(const Step& step,
                                           const Attributes& attributes,
                                           std::vector<Tensor> inputs);
  absl::StatusOr<const GraphPlan*> PlanOf(const ir::Function& function);

  const ir::Model& model_;
  ExecutorOptions options_;
  std::shared_ptr<MemoryMeter> meter_;
  std::shared_ptr<MemoryMeter> weight_meter_;
  ThreadPool threads_;
  Weights weights_;
  RunResources resources_;
  std::unique_ptr<GraphPlan> plan_;
  absl::flat_hash_map<const ir::Function*, std::unique_ptr<GraphPlan>>
      function_plans_;
  FusedCalls fused_calls_;
  int call_depth_ = 0;
  // Nodes that are running, each in a function or graph of the one before.
  std::vector<const ir::Node*> running_;
  bool is_located_ = false;  // an error on its way out says where it is from
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_EXECUTOR_H_
