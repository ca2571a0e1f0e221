// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A pass: a named rewrite of a model. Passes are rows of the table in
// pass_manager.cc; adding one is a file, a row and a test.
//
// A pass matches first (pure) and edits through Rewriter only. It returns an
// error for what makes the input ambiguous; what it merely cannot fuse goes
// into the report.
#ifndef ADDNORM_PASSES_PASS_H_
#define ADDNORM_PASSES_PASS_H_

#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "passes/fusion_report.h"
#include "passes/ir/model.h"

namespace addnorm::passes {

// What fused pairs become; see target.h.
enum class Target { kPortable, kOrt, kOnnx };

struct PassContext {
  Target target = Target::kPortable;
  // Sites that lack a proof for the target become portable ones.
  bool mixed = false;
  // Fills types and shapes that the file does not state. Called at most once,
  // and only if a match needs such a fact; empty: nothing more can be known.
  std::function<absl::Status(ir::Model&)> infer_types;
  FusionReport report;
};

struct Pass {
  std::string_view name;     // kebab-case verb-object
  std::string_view summary;  // one line for --help
  absl::Status (*run)(ir::Model& model, PassContext& context);
};

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_PASS_H_
