// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What a site is rewritten to: the op that carries its own definition, or an op
// that another runtime has a kernel for.
//
//   portable  ai.addnorm function: the same bits, in any runtime
//   ort       com.microsoft.SkipSimplifiedLayerNormalization
//   onnx      Add and RMSNormalization (opset 23 and newer)
//
// The last two round in their own way and are written only where types and
// shapes prove that they compute the same function. Targets are rows of a
// table.
//
//   Emission emission = FindTarget(Target::kOrt).emit(model, constants, site);
//   if (!emission.reason.empty()) …  // "the rank of 's' is unknown"
#ifndef ADDNORM_PASSES_TARGET_H_
#define ADDNORM_PASSES_TARGET_H_

#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <string_view>

#include "passes/constants.h"
#include "passes/ir/model.h"
#include "passes/pass.h"
#include "passes/rewriter.h"
#include "passes/sites.h"

namespace addnorm::passes {

// What takes a site's place.
struct Emission {
  CallReplacement call;
  std::list<ir::Function> function;  // empty: the runtime has the op
  int64_t domain_version = 1;
  std::string reason;     // why there is none
  bool is_there = false;  // for the site is what the target makes of one
};

struct TargetRow {
  Target target;
  std::string_view name;
  std::string_view summary;  // one line for --help
  bool is_exact;             // the same bits as the input
  Emission (*emit)(ir::Model& model, Constants& constants, const Site& site);
};

std::span<const TargetRow> AllTargets();
const TargetRow& FindTarget(Target target);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_TARGET_H_
