// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/fusion.h"

#include <cstdint>
#include <string>
#include <utility>

#include "passes/ir/status_macros.h"
#include "passes/pass.h"
#include "passes/pass_manager.h"
#include "proto/errors.h"
#include "proto/import.h"
#include "proto/infer_types.h"
#include "proto/node_signatures.h"
#include "spdlog/spdlog.h"
#include "tool/report.h"

namespace addnorm::tool {

absl::StatusOr<LoadedModel> Load(std::shared_ptr<proto::ModelFile> file) {
  ASSIGN_OR_RETURN(proto::Imported imported, proto::Import(file));
  for (const std::string& warning : imported.warnings) {
    spdlog::warn("{}: {}", file->name(), warning);
  }
  spdlog::info("{}: {}, {}", file->name(), FormatBytes(file->size()),
               Plural(static_cast<int64_t>(imported.model->AllGraphs().size()),
                      "graph"));
  return LoadedModel{std::move(file), std::move(imported.model)};
}

absl::StatusOr<LoadedModel> LoadToRun(std::shared_ptr<proto::ModelFile> file) {
  ASSIGN_OR_RETURN(LoadedModel loaded, Load(std::move(file)));
  const absl::Status status = proto::CheckNodeSignatures(*loaded.model);
  if (!status.ok()) return proto::WithContext(status, loaded.file->name());
  return loaded;
}

absl::StatusOr<passes::FusionReport> Fuse(LoadedModel& loaded,
                                          passes::Target target, bool mixed) {
  passes::PassContext context;
  context.target = target;
  context.mixed = mixed;
  context.infer_types = [&file = *loaded.file](ir::Model& model) {
    spdlog::info("{}: a match needs types that the file does not state",
                 file.name());
    const absl::Status status = proto::InferTypes(file, model);
    // What it did not find stays unknown: a reason in the report at most.
    if (!status.ok()) {
      spdlog::debug("{}: {}", file.name(), std::string(status.message()));
    }
    return absl::OkStatus();
  };
  const absl::Status status =
      passes::RunPasses(*loaded.model, {"fuse-add-rms-norm"}, context);
  if (!status.ok()) return proto::WithContext(status, loaded.file->name());
  return std::move(context.report);
}

}  // namespace addnorm::tool
