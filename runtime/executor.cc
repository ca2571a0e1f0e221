// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/expanded_size.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "runtime/float_environment.h"

namespace addnorm::runtime {
namespace {

// Deeper calls are a cycle of functions, or an attack.
constexpr int kMaxCallDepth = 100;

// Of the nodes that an error is in, the innermost; and the outermost.
constexpr size_t kShownCalls = 3;

absl::Status WithContext(const absl::Status& status, std::string_view where) {
  return {status.code(),
          fmt::format("{}: {}", where, std::string(status.message()))};
}

// Nodes of a model with its calls expanded: more than any that is meant to end.
constexpr int64_t kMostExpanded = 10'000'000;

// A few functions that each call the next one twice would run for years.
absl::Status CheckExpandedSize(const ir::Model& model) {
  ir::ExpandedSizes sizes(model);
  const int64_t all = sizes.Of(model.graph);
  if (all <= kMostExpanded) return absl::OkStatus();
  std::string where = "the model";
  int64_t size = all;
  // Callees are smaller: the smallest one is what to look at.
  for (const ir::Function& function : model.functions) {
    const int64_t own = sizes.Of(function);
    if (own <= kMostExpanded || own > size) continue;
    size = own;
    where = fmt::format("function '{}::{}'", ir::Printable(function.domain),
                        ir::Printable(function.name));
  }
  return OpContext::Invalid(
      "{}: calls expand to {}{} nodes, expected at most {}", where,
      size == ir::ExpandedSizes::kMost ? "at least " : "", size, kMostExpanded);
}

bool Accepts(const ir::TensorType& declared, const Tensor& tensor) {
  if (declared.known() && declared.element != tensor.type()) return false;
  if (!declared.shape) return true;
  if (declared.shape->size() != tensor.dims().size()) return false;
  for (size_t i = 0; i < tensor.dims().size(); ++i) {
    const std::optional<int64_t>& dim = (*declared.shape)[i].value;
    if (dim && *dim != tensor.dims()[i]) return false;
  }
  return true;
}

}  // namespace

// The graphs of one node, run with what they capture from the node's frame.
class Executor::NodeSubgraphs : public SubgraphRunner {
 public:
  NodeSubgraphs(Executor& executor, const Frame& frame, const Step& step)
      : executor_(executor), frame_(frame), step_(step) {}

  absl::StatusOr<std::vector<Tensor>> Run(std::string_view attribute,
                                          std::vector<Tensor> inputs) override {
    ASSIGN_OR_RETURN(const GraphPlan* plan, Find(attribute));
    std::vector<Tensor> captures;
    for (const auto& [value, slot] : plan->captures) {
      ASSIGN_OR_RETURN(captures.emplace_back(),
                       executor_.Read(frame_, frame_.plan.slot(value)));
    }
    return executor_.RunGraph(*plan, std::move(inputs), std::move(captures),
                              frame_.caller);
  }

  absl::StatusOr<size_t> InputCount(std::string_view attribute) override {
    ASSIGN_OR_RETURN(const GraphPlan* plan, Find(attribute));
    return plan->inputs.size();
  }

 private:
  absl::StatusOr<const GraphPlan*> Find(std::string_view name) const {
    const ir::Attribute* attribute = step_.node->attribute(name);
    const auto* graph = attribute == nullptr
                            ? nullptr
                            : attribute->get<std::unique_ptr<ir::Graph>>();
    for (const auto& plan : step_.subgraphs) {
      if (graph != nullptr && plan->graph == graph->get()) return plan.get();
    }
    return OpContext::Invalid("has no graph '{}'", name);
  }

  Executor& executor_;
  const Frame& frame_;
  const Step& step_;
};

Executor::Executor(const ir::Model& model, const ExecutorOptions& options)
    : model_(model),
      options_(options),
      meter_(std::make_shared<MemoryMeter>()),
      weight_meter_(std::make_shared<MemoryMeter>()),
      threads_(options.threads),
      weights_(model, weight_meter_, options.weight_pool),
      resources_{threads_, meter_, weights_} {}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(
    const ir::Model& model, const ExecutorOptions& options) {
  RETURN_IF_ERROR(CheckExpandedSize(model));
  std::unique_ptr<Executor> executor(new Executor(model, options));
  ASSIGN_OR_RETURN(executor->plan_, MakeGraphPlan(model.graph));
  return executor;
}

absl::Status Executor::CheckInputs(std::span<const Tensor> inputs) const {
  const std::vector<ir::Value*>& declared = model_.graph.inputs();
  if (inputs.size() != declared.size()) {
    return OpContext::Invalid("the model has {} inputs, found {}",
                              declared.size(), inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Value& input = *declared[i];
    if (inputs[i].is_absent() && input.initializer() != nullptr) continue;
    if (inputs[i].is_absent())
      return OpContext::Invalid("input '{}' is missing",
                                ir::Printable(input.name()));
    if (!Accepts(input.type, inputs[i])) {
      return OpContext::Invalid("input '{}': expected {}, found {}",
                                ir::Printable(input.name()),
                                ir::ToString(input.type), Describe(inputs[i]));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Executor::Run(std::vector<Tensor> inputs) {
  RETURN_IF_ERROR(CheckInputs(inputs));
  return RunGraph(*plan_, std::move(inputs), {}, nullptr);
}

absl::StatusOr<Executor::Frame> Executor::Begin(std::vector<Tensor> inputs) {
  RETURN_IF_ERROR(CheckInputs(inputs));
  Frame frame{*plan_};
  frame.values.resize(plan_->slots.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    frame.values[plan_->inputs[i]] = std::move(inputs[i]);
  return frame;
}

absl::StatusOr<std::vector<Tensor>> Executor::RunGraph(
    const GraphPlan& plan, std::vector<Tensor> inputs,
    std::vector<Tensor> captures, const Attributes* caller) {
  Frame frame{plan, caller};
  frame.values.resize(plan.slots.size());
  if (inputs.size() > plan.inputs.size()) {
    return OpContext::Invalid("a graph has {} inputs, given {}",
                              plan.inputs.size(), inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    frame.values[plan.inputs[i]] = std::move(inputs[i]);
  for (size_t i = 0; i < captures.size(); ++i)
    frame.values[plan.captures[i].second] = std::move(captures[i]);
  for (const Step& step : plan.steps) RETURN_IF_ERROR(RunStep(frame, step));
  return Outputs(frame);
}

absl::StatusOr<std::vector<Tensor>> Executor::Outputs(const Frame& frame) {
  std::vector<Tensor> outputs;
  for (const Slot slot : frame.plan.outputs) {
    ASSIGN_OR_RETURN(outputs.emplace_back(), Read(frame, slot));
  }
  return outputs;
}

absl::StatusOr<Tensor> Executor::Read(const Frame& frame, Slot slot) {
  if (slot == kNoSlot) return Tensor();
  if (!frame.values[slot].is_absent()) return frame.values[slot];
  const auto initializer = frame.plan.initializers.find(slot);
  if (initializer == frame.plan.initializers.end()) return Tensor();
  return weights_.Get(*initializer->second);
}

absl::Status Executor::RunStep(Frame& frame, const Step& step) {
  const FloatEnvironment environment;
  running_.push_back(step.node);
  absl::Status status = RunStepWithoutContext(frame, step);
  if (!status.ok() && !is_located_) {
    status = WithContext(status, PlaceText());
    is_located_ = true;
  }
  running_.pop_back();
  if (running_.empty()) is_located_ = false;
  return status;
}

// "Add 'sum' in Loop 'l' in Block 'b'".
std::string Executor::PlaceText() const {
  std::string text;
  const size_t depth = running_.size();
  for (size_t i = depth; i-- > 0;) {
    const size_t above = depth - 1 - i;
    if (above == kShownCalls && i > 1) {
      text += fmt::format(" in {} more", i);
      i = 1;
      continue;
    }
    text += (text.empty() ? "" : " in ") + running_[i]->Describe();
  }
  return text;
}

absl::Status Executor::RunStepWithoutContext(Frame& frame, const Step& step) {
  std::vector<Tensor> inputs;
  inputs.reserve(step.inputs.size());
  for (const Slot slot : step.inputs) {
    ASSIGN_OR_RETURN(inputs.emplace_back(), Read(frame, slot));
  }
  if (options_.observer != nullptr) options_.observer->BeforeNode(step, inputs);
  // What dies here is the op's alone. Graphs of the node may still capture it.
  if (step.subgraphs.empty()) {
    for (const Slot slot : step.dying) frame.values[slot] = Tensor();
  }
  ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                   Compute(frame, step, std::move(inputs)));
  if (options_.observer != nullptr) options_.observer->AfterNode(step, outputs);
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] == kNoSlot) continue;
    if (i >= outputs.size() || outputs[i].is_absent())
      return OpContext::Unsupported("output {} is not computed", i);
    frame.values[step.outputs[i]] = std::move(outputs[i]);
  }
  for (const Slot slot : step.dying) frame.values[slot] = Tensor();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Executor::RunNode(
    const ir::Node& node, std::vector<Tensor> inputs) {
  const FloatEnvironment environment;
  Step step = StepOf(node);
  step.outputs.resize(node.outputs().size());
  Frame frame{*plan_};
  return Compute(frame, step, std::move(inputs));
}

absl::StatusOr<std::vector<Tensor>> Executor::Compute(
    Frame& frame, const Step& step, std::vector<Tensor> inputs) {
  const Attributes attributes(*step.node, frame.caller);
  if (step.function != nullptr)
    return Call(step, attributes, std::move(inputs));
  if (step.op == nullptr) {
    const std::string& domain = step.node->domain();
    return OpContext::Unsupported(
        "the runtime has no operator {}{}{}", ir::Printable(domain),
        domain.empty() ? "" : "::", ir::Printable(step.node->op_type()));
  }
  NodeSubgraphs subgraphs(*this, frame, step);
  OpContext op(*step.op, *step.node, attributes, step.opset, std::move(inputs),
               step.outputs.size(), resources_, &subgraphs);
  RETURN_IF_ERROR(step.op->run(op));
  RETURN_IF_ERROR(op.attributes().status());
  return op.TakeOutputs();
}

absl::StatusOr<const GraphPlan*> Executor::PlanOf(
    const ir::Function& function) {
  std::unique_ptr<GraphPlan>& plan = function_plans_[&function];
  if (plan == nullptr) {
    ASSIGN_OR_RETURN(plan, MakeGraphPlan(function.body));
  }
  return plan.get();
}

absl::StatusOr<std::vector<Tensor>> Executor::Call(const Step& step,
                                                   const Attributes& attributes,
                                                   std::vector<Tensor> inputs) {
  if (call_depth_ >= kMaxCallDepth)
    return OpContext::Invalid("calls are nested deeper than {}", kMaxCallDepth);
  if (options_.row_kernels) {
    OpContext call(kFusedRow, *step.node, attributes, step.opset,
                   std::move(inputs), step.outputs.size(), resources_);
    ASSIGN_OR_RETURN(const bool done, fused_calls_.Run(*step.function, call));
    if (done) return call.TakeOutputs();
    inputs = call.TakeInputs();
  }
  ASSIGN_OR_RETURN(const GraphPlan* plan, PlanOf(*step.function));
  ++call_depth_;
  absl::StatusOr<std::vector<Tensor>> outputs =
      RunGraph(*plan, std::move(inputs), {}, &attributes);
  --call_depth_;
  return outputs;
}

}  // namespace addnorm::runtime
