// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// bench MODEL: a whole model, unfused against fused, end to end and in its
// sites alone, in the same rounds.
//
// Fused is what `optimize` makes of the model, in memory; unfused is the model
// as it is, with the ops that are fused already run node by node. What is not a
// site is the same in both. Without sites there is no fused model, and nothing
// is measured but other models beside this one, if there are any.
//
//   ASSIGN_OR_RETURN(ModelBench bench, BenchModel(std::move(file), request));
#ifndef ADDNORM_TOOL_BENCH_MODEL_H_
#define ADDNORM_TOOL_BENCH_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/model_file.h"
#include "tool/bench_against.h"
#include "tool/bench_result.h"
#include "tool/machine_usage.h"
#include "tool/run_inputs.h"

namespace addnorm::tool {

struct ModelBenchRequest {
  InputRequest inputs = {};  // its seed is also that of the arms' order
  int threads = 1;
  double seconds = 10;
  size_t least_rounds = 1;
  bool pins = true;  // threads to cores
  AgainstRequest against = {};
  std::function<void(double share)> on_progress = nullptr;
};

// Arms of a model's cases, the last one only with sites; those of others follow
// in `whole`.
enum ModelArm : size_t { kUnfusedModel, kUnfusedModelAgain, kFusedModel };

struct ModelBench {
  std::string name;
  bool is_measured = false;  // not without sites or others
  int64_t sites = 0;
  int64_t fused_before = 0;  // of them, in the model as it came
  RunInputs inputs;
  uint64_t seed = 0;
  int threads = 1;
  // Of whole runs; sites are always timed by the wall's clock.
  bool uses_processor_time() const { return threads == 1; }
  BenchCase whole;  // seconds of a run
  BenchCase parts;  // of these, in the sites, if there are any
  // What was measured: both, `whole` or nothing.
  std::vector<BenchCase*> cases();
  // Of values, without weights and inputs: what `run` says too.
  size_t unfused_peak_bytes = 0, fused_peak_bytes = 0;
  bool has_same_bits = false;
  std::vector<OtherArm> others;
  std::vector<std::string> not_run;  // other arms, with their reasons
  std::vector<int> cores;            // that threads were pinned to
  MachineUsage usage;
};

absl::StatusOr<ModelBench> BenchModel(std::shared_ptr<proto::ModelFile> file,
                                      const ModelBenchRequest& request);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_MODEL_H_
