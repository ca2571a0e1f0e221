// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime's arms of a benchmark: a model as it came, as `optimize` makes
// it, and, where it fits, with ONNX Runtime's own fused op.
//
// It times nothing: the arms take their turns with this runtime's
// (bench_harness.h). What ONNX Runtime cannot run is an arm less, with its
// reason.
//
//   ASSIGN_OR_RETURN(OrtSides sides, LoadOrtSides(*ort, request));
//   for (const OrtSide& side : sides.sides) …
#ifndef ADDNORM_TOOL_BENCH_ORT_H_
#define ADDNORM_TOOL_BENCH_ORT_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/model_file.h"
#include "runtime/pair_arms.h"
#include "tool/fusion.h"
#include "tool/onnx_runtime.h"

namespace addnorm::tool {

struct OrtSide {
  std::string name;  // "ort unfused"
  std::unique_ptr<OrtSession> session;
};

struct OrtSides {
  std::vector<OrtSide> sides;
  std::vector<std::string> not_run;  // "ort fused: reason"
};

struct OrtRequest {
  int threads = 1;
  std::span<const int> cores = {};
  // Of the graph's inputs, those that are given.
  std::vector<bool> is_given = {};
};

// "ort unfused", the same again, "ort fused" and "ort own op" of a model.
absl::StatusOr<OrtSides> LoadOrtSides(
    const OnnxRuntime& ort, const std::shared_ptr<proto::ModelFile>& file,
    const OrtRequest& request);
// Another model as it is.
void AddOrtSide(const OnnxRuntime& ort, const LoadedModel& loaded,
                std::string name, const OrtRequest& request, OrtSides& sides);

// The pair of a benchmark as a model: inputs a, b, w and outputs y, sum.
// `recipe` is a word of --recipes.
absl::StatusOr<std::shared_ptr<proto::ModelFile>> PairModel(
    std::string_view recipe, const runtime::PairSetting& setting,
    double epsilon);

// The model's arms, on the buffers of `arms`, which must not outlive it.
class OrtPair {
 public:
  static absl::StatusOr<std::unique_ptr<OrtPair>> Create(
      const OnnxRuntime& ort, std::string_view recipe,
      const runtime::PairSetting& setting, std::span<const int> cores,
      runtime::PairArms& arms);

  const OrtSides& sides() const { return sides_; }
  // The first that a run had.
  const absl::Status& failure() const { return failure_; }

 private:
  struct Values {
    std::vector<OrtValue> owners;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
  };
  absl::Status WrapSets(const OnnxRuntime& ort,
                        const runtime::PairSetting& setting,
                        runtime::PairArms& arms);

  OrtSides sides_;
  std::vector<OrtValue> scale_;  // one
  std::vector<Values> sets_;
  absl::Status failure_;
};

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_ORT_H_
