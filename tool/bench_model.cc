// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_model.h"

#include <chrono>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "passes/fused_op.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "runtime/bench_harness.h"
#include "runtime/compare.h"
#include "runtime/core_pinning.h"
#include "runtime/executor.h"
#include "tool/fusion.h"

namespace addnorm::tool {
namespace {

using runtime::Executor;
using runtime::Tensor;
using Nodes = absl::flat_hash_set<const ir::Node*>;

// The time of some nodes, with what is inside of them.
class SiteTimer : public runtime::RunObserver {
 public:
  explicit SiteTimer(Nodes nodes) : nodes_(std::move(nodes)) {}

  void BeforeNode(const runtime::Step& step, std::span<const Tensor>) override {
    if (nodes_.contains(step.node) && depth_++ == 0) start_ = Clock::now();
  }
  void AfterNode(const runtime::Step& step, std::span<const Tensor>) override {
    if (nodes_.contains(step.node) && --depth_ == 0)
      time_ += Clock::now() - start_;
  }
  // Seconds since the last Take.
  double Take() { return std::exchange(time_, {}).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Nodes nodes_;
  int depth_ = 0;
  Clock::time_point start_;
  std::chrono::duration<double> time_{0};
};

// Calls of fused ops, and the nodes whose messages are listed.
Nodes SiteNodes(ir::Model& model,
                const absl::flat_hash_set<ir::Source>& sources,
                int64_t& calls) {
  Nodes nodes;
  for (const ir::Graph* graph : model.AllGraphs()) {
    for (const ir::Node& node : graph->nodes()) {
      const bool is_call = node.domain() == passes::kFusedDomain;
      calls += is_call ? 1 : 0;
      if (is_call || sources.contains(node.source)) nodes.insert(&node);
    }
  }
  return nodes;
}

absl::flat_hash_set<ir::Source> ErasedSources(ir::Model& model) {
  absl::flat_hash_set<ir::Source> sources;
  for (const ir::Graph* graph : model.AllGraphs()) {
    const auto& erased = graph->erased_sources();
    sources.insert(erased.begin(), erased.end());
  }
  sources.erase(ir::kNoSource);
  return sources;
}

// A model that runs again and again on the same inputs.
class Side {
 public:
  // The model must outlive it.
  Side(const LoadedModel& loaded, Nodes sites)
      : loaded_(loaded), timer_(std::move(sites)) {}

  absl::Status SetUp(const ModelBenchRequest& request, bool row_kernels,
                     runtime::WeightPool& weights) {
    ASSIGN_OR_RETURN(
        executor_, Executor::Create(*loaded_.model, {.threads = request.threads,
                                                     .row_kernels = row_kernels,
                                                     .weight_pool = &weights}));
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs) {
    auto outputs = executor_->Run(inputs);
    if (outputs.ok()) return outputs;
    return proto::WithContext(outputs.status(), loaded_.file->name());
  }
  size_t peak_bytes() { return executor_->memory().peak(); }
  // Observers take time of every node, so that whole runs are timed without.
  SiteTimer& TimeSites() {
    executor_->Observe(&timer_);
    return timer_;
  }

 private:
  const LoadedModel& loaded_;
  SiteTimer timer_;
  std::unique_ptr<Executor> executor_;
};

class ModelBencher {
 public:
  // Sides by ModelArm.
  ModelBencher(const ModelBenchRequest& request, std::vector<Side>& sides,
               OtherModels others, ModelBench& result)
      : request_(request),
        sides_(sides),
        others_(std::move(others)),
        result_(result) {
    result.not_run = std::move(others_.not_run);
  }

  // The first runs: they read weights, and give bits and peaks.
  absl::Status Check() {
    ASSIGN_OR_RETURN(const std::vector<Tensor> expected, Run(kUnfusedModel));
    result_.unfused_peak_bytes = sides_[kUnfusedModel].peak_bytes();
    RETURN_IF_ERROR(Run(kUnfusedModelAgain).status());
    if (has_fused()) {
      ASSIGN_OR_RETURN(const std::vector<Tensor> found, Run(kFusedModel));
      result_.fused_peak_bytes = sides_[kFusedModel].peak_bytes();
      result_.has_same_bits = CompareAll(expected, found).is_equal();
    }
    for (const OtherModel& other : others_.models) {
      const auto found = other.results();
      if (!found.ok()) return proto::WithContext(found.status(), other.name);
      result_.others.push_back({other.name,
                                sides_.size() + result_.others.size(),
                                CompareAll(expected, *found)});
    }
    return absl::OkStatus();
  }

  absl::Status Measure() {
    std::vector<runtime::BenchArm> arms;
    for (size_t arm = 0; arm < sides_.size(); ++arm)
      arms.push_back(MakeArm(arm));
    for (const OtherModel& other : others_.models)
      arms.push_back(MakeArm(other));
    const UsageMeter meter;
    const double end = has_fused() ? kShareOfWholeRuns : 1;
    result_.whole =
        MakeCase(arms, Bases(), runtime::Interleave(arms, Options(0, end)));
    if (failure_.ok() && has_fused()) MeasureSites();
    result_.usage = meter.Take();
    result_.is_measured = true;
    return failure_;
  }

 private:
  static runtime::Comparison CompareAll(const std::vector<Tensor>& expected,
                                        const std::vector<Tensor>& found) {
    runtime::Comparison all;
    for (size_t i = 0; i < expected.size(); ++i)
      all.Add(runtime::Compare(expected[i], found[i]));
    return all;
  }

  // Of the time; the rest is for the sites.
  static constexpr double kShareOfWholeRuns = 0.75;

  // The same arms in rounds of their own.
  void MeasureSites() {
    std::vector<runtime::BenchArm> arms;
    std::vector<std::vector<double>> seconds(sides_.size());
    for (size_t arm = 0; arm < sides_.size(); ++arm) {
      SiteTimer& timer = sides_[arm].TimeSites();
      runtime::BenchArm& made = arms.emplace_back(MakeArm(arm));
      made.before_epoch = [&timer] { timer.Take(); };
      made.after_epoch = [&timer, &of_arm = seconds[arm]](int64_t calls) {
        of_arm.push_back(timer.Take() / static_cast<double>(calls));
      };
    }
    runtime::Timings timings =
        runtime::Interleave(arms, Options(kShareOfWholeRuns, 1));
    timings.seconds = std::move(seconds);
    const std::vector<size_t> bases(arms.size(), kUnfusedModel);
    result_.parts = MakeCase(arms, bases, std::move(timings));
  }

  bool has_fused() const { return sides_.size() > kFusedModel; }
  absl::StatusOr<std::vector<Tensor>> Run(size_t arm) {
    return sides_[arm].Run(result_.inputs.tensors);
  }

  // From one share of the time to another.
  runtime::BenchOptions Options(double begin, double end) {
    runtime::BenchOptions options{.seconds = (end - begin) * request_.seconds,
                                  .least_rounds = request_.least_rounds,
                                  .seed = request_.inputs.seed};
    options.on_progress = [this, begin, end](double share) {
      if (request_.on_progress)
        request_.on_progress(begin + share * (end - begin));
      return failure_.ok();
    };
    if (result_.uses_processor_time()) {
      options.now = runtime::ProcessorSeconds;
      options.wall = runtime::SteadySeconds;
    }
    return options;
  }

  // ONNX Runtime's arms are compared with its first, the unfused one.
  std::vector<size_t> Bases() const {
    std::vector<size_t> bases(sides_.size(), kUnfusedModel);
    size_t first_ort = 0;
    for (size_t i = 0; i < others_.models.size(); ++i) {
      const bool is_ort = others_.models[i].is_ort;
      if (is_ort && first_ort == 0) first_ort = bases.size();
      bases.push_back(is_ort ? first_ort : kUnfusedModel);
    }
    return bases;
  }

  runtime::BenchArm MakeArm(const OtherModel& other) {
    return {other.name, [this, run = other.run] { failure_.Update(run()); }};
  }

  runtime::BenchArm MakeArm(size_t arm) {
    constexpr const char* kNames[] = {"unfused", "unfused again", "fused"};
    return {kNames[arm], [this, arm] { failure_.Update(Run(arm).status()); }};
  }

  const ModelBenchRequest& request_;
  std::vector<Side>& sides_;
  OtherModels others_;
  ModelBench& result_;
  absl::Status failure_;
};

absl::Status Measure(const LoadedModel& unfused, const LoadedModel& fused,
                     const ModelBenchRequest& request, ModelBench& result) {
  const auto sources = ErasedSources(*fused.model);
  Nodes unfused_sites = SiteNodes(*unfused.model, sources, result.fused_before);
  Nodes fused_sites = SiteNodes(*fused.model, {}, result.sites);
  if (result.sites == 0 && !request.against.any()) return absl::OkStatus();
  const runtime::CorePinning pinning(request.pins ? request.threads : 0);
  result.cores = pinning.cores();
  runtime::WeightPool weights;
  ASSIGN_OR_RETURN(OtherModels others,
                   LoadOthers(unfused, result.inputs.tensors, request.against,
                              {request.threads, result.cores, weights}));
  // Unfused again has buffers of its own: what their places cost is noise.
  std::vector<Side> sides;
  sides.emplace_back(unfused, unfused_sites);
  sides.emplace_back(unfused, std::move(unfused_sites));
  if (result.sites > 0) sides.emplace_back(fused, std::move(fused_sites));
  for (size_t arm = 0; arm < sides.size(); ++arm) {
    const absl::Status status =
        sides[arm].SetUp(request, /*row_kernels=*/arm == kFusedModel, weights);
    if (!status.ok()) return proto::WithContext(status, result.name);
  }
  ModelBencher bencher(request, sides, std::move(others), result);
  RETURN_IF_ERROR(bencher.Check());
  return bencher.Measure();
}

}  // namespace

std::vector<BenchCase*> ModelBench::cases() {
  if (!is_measured) return {};
  if (sites == 0) return {&whole};
  return {&whole, &parts};
}

absl::StatusOr<ModelBench> BenchModel(std::shared_ptr<proto::ModelFile> file,
                                      const ModelBenchRequest& request) {
  ModelBench result;
  result.name = file->name();
  result.seed = request.inputs.seed;
  result.threads = request.threads;
  ASSIGN_OR_RETURN(LoadedModel unfused, LoadToRun(file));
  ASSIGN_OR_RETURN(LoadedModel fused, Load(file));
  RETURN_IF_ERROR(Fuse(fused).status());
  ASSIGN_OR_RETURN(result.inputs, GatherInputs(*unfused.model, request.inputs));
  RETURN_IF_ERROR(Measure(unfused, fused, request, result));
  return result;
}

}  // namespace addnorm::tool
