// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// bench MODEL --against: other models that claim to be the same, and ONNX
// Runtime, as further arms on the same inputs.
//
//   ASSIGN_OR_RETURN(OtherModels others, LoadOthers(loaded, inputs, request));
//   others.models[0].run();
#ifndef ADDNORM_TOOL_BENCH_AGAINST_H_
#define ADDNORM_TOOL_BENCH_AGAINST_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/model_file.h"
#include "runtime/tensor.h"
#include "runtime/weights.h"
#include "tool/fusion.h"
#include "tool/onnx_runtime.h"

namespace addnorm::tool {

struct AgainstRequest {
  std::vector<std::shared_ptr<proto::ModelFile>> files = {};
  const OnnxRuntime* ort = nullptr;  // must outlive the models
  bool any() const { return !files.empty() || ort != nullptr; }
};

struct OtherModel {
  std::string name;  // "fused.onnx", "ort unfused"
  bool is_ort = false;
  std::function<absl::Status()> run;
  // Of one run, in the order of the outputs of the model that it is beside.
  std::function<absl::StatusOr<std::vector<runtime::Tensor>>()> results;
};

struct OtherModels {
  std::vector<OtherModel> models;
  std::vector<std::string> not_run;  // "ort fused: reason"
};

// What all that is measured together has in common.
struct Surroundings {
  int threads = 1;
  const std::vector<int>& cores;  // that they are pinned to
  runtime::WeightPool& weights;   // of models in this runtime
};

// `inputs` are those of `loaded`, in its order. kInvalidArgument if another
// model has other inputs or outputs. `around` must outlive the models.
absl::StatusOr<OtherModels> LoadOthers(
    const LoadedModel& loaded, const std::vector<runtime::Tensor>& inputs,
    const AgainstRequest& request, const Surroundings& around);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_AGAINST_H_
