// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What `optimize` and `inspect` have in common: a model in memory, and the pass
// run on it. Nothing is written here.
//
//   ASSIGN_OR_RETURN(LoadedModel loaded, Load(*file));
//   ASSIGN_OR_RETURN(passes::FusionReport report, Fuse(loaded));
#ifndef ADDNORM_TOOL_FUSION_H_
#define ADDNORM_TOOL_FUSION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "passes/fusion_report.h"
#include "passes/ir/model.h"
#include "passes/pass.h"
#include "proto/model_file.h"

namespace addnorm::tool {

struct LoadedModel {
  std::shared_ptr<proto::ModelFile> file;
  std::unique_ptr<ir::Model> model;
};

// Imports an open file; what is odd in it goes to the log.
absl::StatusOr<LoadedModel> Load(std::shared_ptr<proto::ModelFile> file);
// The same for a model that is to be run: kInvalidArgument too for a node that
// has not what its operator's schema says (proto/node_signatures.h).
absl::StatusOr<LoadedModel> LoadToRun(std::shared_ptr<proto::ModelFile> file);

// Runs fuse-add-rms-norm: the model in memory is edited, the file is not.
// `mixed`: sites that lack a proof for the target become portable ones.
absl::StatusOr<passes::FusionReport> Fuse(
    LoadedModel& loaded, passes::Target target = passes::Target::kPortable,
    bool mixed = false);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_FUSION_H_
