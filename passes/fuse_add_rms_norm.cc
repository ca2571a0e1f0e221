// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse_add_rms_norm.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "passes/body_name.h"
#include "passes/constants.h"
#include "passes/fused_op.h"
#include "passes/rewriter.h"
#include "passes/sites.h"

namespace addnorm::passes {
namespace {

// Add broadcasts as today since 7; 28 is the newest opset whose operators the
// body is known to be valid for.
constexpr int64_t kOldestOpset = 7;
constexpr int64_t kNewestOpset = 28;

// Model-local functions are new in IR version 8.
constexpr int64_t kFunctionsIrVersion = 8;

class Fuser {
 public:
  explicit Fuser(ir::Model& model) : model_(model), rewriter_(model) {}

  // Fuses the site, or says in its candidate why not.
  void Fuse(Constants& constants, Site& site);

 private:
  std::string TryFuse(Constants& constants, Site& site);
  std::string AddFunction(FusedOp& op);

  ir::Model& model_;
  Rewriter rewriter_;
  absl::flat_hash_set<const ir::Graph*> sorted_;
  absl::flat_hash_set<const ir::Node*> gone_;
};

CallReplacement MakeCall(const Site& site, FusedOp& op) {
  CallReplacement call{.root = site.add,
                       .nodes = {site.add},
                       .operands = op.operands,
                       .results = {site.norm.y, site.norm.x},
                       .domain = std::string(kFusedDomain),
                       .op_type = op.name(),
                       .attributes = {}};
  for (ir::Node* node : site.norm.nodes) {
    const auto& shared = site.norm.shared;
    if (std::find(shared.begin(), shared.end(), node) == shared.end())
      call.nodes.push_back(node);
  }
  call.attributes.push_back(std::move(op.epsilon));
  return call;
}

void Fuser::Fuse(Constants& constants, Site& site) {
  site.candidate.reason = TryFuse(constants, site);
  if (!site.candidate.reason.empty())
    site.candidate.verdict = Verdict::kNotFused;
}

std::string Fuser::TryFuse(Constants& constants, Site& site) {
  ir::Graph& graph = *site.add->graph();
  for (const ir::Node* node : site.norm.nodes) {
    if (gone_.contains(node))
      return "a node of the norm belongs to another site";
  }
  FusedOp op = BuildFusedOp(model_, constants, *site.add, site.norm);
  if (op.function.empty()) return op.reason;
  if (sorted_.insert(&graph).second) rewriter_.Sort(graph);
  CallReplacement call = MakeCall(site, op);
  const std::optional<Place> place = rewriter_.FindPlace(call);
  if (!place) {
    return fmt::format(
        "the scale '{}' depends on the sum: fused, they would be a cycle",
        site.norm.scale == nullptr ? "" : site.norm.scale->name());
  }
  site.candidate.op = op.name();
  if (std::string reason = AddFunction(op); !reason.empty()) return reason;
  gone_.insert(call.nodes.begin(), call.nodes.end());
  rewriter_.ReplaceByCall(std::move(call), *place);
  rewriter_.ImportDomain(graph, std::string(kFusedDomain), kFusedDomainVersion);
  return "";
}

std::string Fuser::AddFunction(FusedOp& op) {
  const ir::Function* known = model_.FindFunction(kFusedDomain, op.name());
  if (known == nullptr) {
    rewriter_.AddFunction(std::move(op.function));
    return "";
  }
  if (BodyKey(*known) == BodyKey(op.function.front())) return "";
  return fmt::format("the model has another function named '{}'", op.name());
}

absl::StatusOr<std::vector<Site>> FindSites(ir::Model& model,
                                            Constants& constants,
                                            PassContext& context) {
  SiteFinder finder(model, constants);
  std::vector<Site> sites = finder.Find();
  context.report.layer_norms = finder.layer_norms();
  if (!finder.needs_type() || !context.infer_types) return sites;
  const auto infer_types = std::exchange(context.infer_types, nullptr);
  if (absl::Status status = infer_types(model); !status.ok()) return status;
  return FindSites(model, constants, context);
}

std::string CheckOpset(const ir::Model& model) {
  const std::optional<int64_t> opset = model.OpsetVersion("");
  if (!opset) return "the model imports no version of the default domain";
  if (*opset >= kOldestOpset && *opset <= kNewestOpset) return "";
  return fmt::format("opset {} is not known, expected {} to {}", *opset,
                     kOldestOpset, kNewestOpset);
}

}  // namespace

absl::Status FuseAddRmsNorm(ir::Model& model, PassContext& context) {
  Constants constants(model);
  absl::StatusOr<std::vector<Site>> sites =
      FindSites(model, constants, context);
  if (!sites.ok()) return sites.status();

  const std::string opset_reason = CheckOpset(model);
  Fuser fuser(model);
  for (Site& site : *sites) {
    if (site.candidate.verdict == Verdict::kFused && !opset_reason.empty()) {
      site.candidate.verdict = Verdict::kNotFused;
      site.candidate.reason = opset_reason;
    }
    if (site.candidate.verdict == Verdict::kFused) fuser.Fuse(constants, site);
    context.report.candidates.push_back(std::move(site.candidate));
  }
  const bool has_fused = context.report.Count(Verdict::kFused) > 0;
  if (has_fused && model.ir_version < kFunctionsIrVersion) {
    context.report.notes.push_back(fmt::format(
        "ir_version raised from {} to {}: older ones have no functions",
        model.ir_version, kFunctionsIrVersion));
    model.ir_version = kFunctionsIrVersion;
  }
  return absl::OkStatus();
}

}  // namespace addnorm::passes
