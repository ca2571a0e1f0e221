// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse_add_rms_norm.h"

#include <algorithm>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "passes/body_name.h"
#include "passes/constants.h"
#include "passes/fused_op.h"
#include "passes/hints.h"
#include "passes/rewriter.h"
#include "passes/sites.h"
#include "passes/target.h"

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
  Fuser(ir::Model& model, const PassContext& context)
      : model_(model), context_(context), rewriter_(model) {}

  // Fuses the site, or says in its candidate why not.
  void Fuse(Constants& constants, Site& site);

  // True if the site's first operator went with another site: then it is a part
  // of that one that looks like the beginning of a norm.
  bool IsPartOfAnother(const Site& site) const {
    return site.candidate.verdict != Verdict::kFused &&
           gone_.contains(site.head);
  }

 private:
  bool SharesNoNode(const Site& site) const {
    return std::none_of(
        site.norm.nodes.begin(), site.norm.nodes.end(),
        [&](const ir::Node* node) { return gone_.contains(node); });
  }
  std::string CheckScope(const ir::Graph& graph) const;
  bool DropScale(Constants& constants, Site& site);
  std::optional<Place> PlaceWithoutScale(Constants& constants, Site& site,
                                         Emission& emission);
  Emission Emit(Constants& constants, Site& site);
  std::string TryFuse(Constants& constants, Site& site);
  std::string AddFunction(std::list<ir::Function>& function);

  ir::Model& model_;
  const PassContext& context_;
  Rewriter rewriter_;
  absl::flat_hash_set<const ir::Graph*> numbered_;
  absl::flat_hash_set<const ir::Graph*> sorted_;
  absl::flat_hash_set<const ir::Node*> gone_;
  // Two norms on one sum: the first takes the Add, the other reads the sum.
  absl::flat_hash_map<const ir::Node*, std::string> takers_;
};

void Fuser::Fuse(Constants& constants, Site& site) {
  site.candidate.reason = TryFuse(constants, site);
  if (!site.candidate.reason.empty())
    site.candidate.verdict = Verdict::kNotFused;
}

Emission Fuser::Emit(Constants& constants, Site& site) {
  Emission emission = FindTarget(context_.target).emit(model_, constants, site);
  if (emission.reason.empty() || emission.is_there || !context_.mixed)
    return emission;
  site.candidate.hint = "portable: " + emission.reason;
  return FindTarget(Target::kPortable).emit(model_, constants, site);
}

std::string Fuser::TryFuse(Constants& constants, Site& site) {
  // Nodes of sites that were fused are gone: they are told by their addresses.
  if (const auto taker = takers_.find(site.add); taker != takers_.end()) {
    return fmt::format(
        "the norm that makes '{}' takes the Add; this one reads the same sum",
        taker->second);
  }
  if (!SharesNoNode(site)) return "a node of the norm belongs to another site";
  ir::Graph& graph = *site.add->graph();
  if (std::string reason = CheckScope(graph); !reason.empty()) return reason;
  if (numbered_.insert(&graph).second) rewriter_.Number(graph);
  Emission emission = Emit(constants, site);
  if (!emission.reason.empty()) return emission.reason;
  std::optional<Place> place = rewriter_.FindPlace(emission.call);
  if (!place) {
    const std::string reason = fmt::format(
        "the scale '{}' depends on the sum: fused, they would be a cycle",
        site.norm.scale == nullptr ? "" : site.norm.scale->name());
    place = PlaceWithoutScale(constants, site, emission);
    if (!place) return reason;
  }
  CallReplacement& call = emission.call;
  if (std::string reason = AddFunction(emission.function); !reason.empty()) {
    return reason;
  }
  // Moved only now: a graph without a site stays as it is.
  if (sorted_.insert(&graph).second) {
    rewriter_.Sort(graph);
    place = rewriter_.FindPlace(call);
  }
  const std::string domain = call.domain;
  site.candidate.op = domain.empty() || domain == kFusedDomain
                          ? call.op_type
                          : fmt::format("{}.{}", domain, call.op_type);
  takers_.emplace(site.add, site.norm.y->name());
  gone_.insert(call.nodes.begin(), call.nodes.end());
  rewriter_.ReplaceByCall(std::move(call), *place);
  rewriter_.ImportDomain(graph, domain, emission.domain_version);
  return "";
}

// The weight stays outside, where it may depend on the sum.
bool Fuser::DropScale(Constants& constants, Site& site) {
  if (site.norm.scale == nullptr) return false;
  NormMatch unscaled = Matcher(model_, constants).MatchUnscaledFrom(site.head);
  if (!unscaled.found()) return false;
  site.norm = std::move(unscaled);
  site.candidate.variant = site.norm.variant;
  site.candidate.y = site.norm.y->name();
  return true;
}

std::optional<Place> Fuser::PlaceWithoutScale(Constants& constants, Site& site,
                                              Emission& emission) {
  if (!DropScale(constants, site)) return std::nullopt;
  emission = Emit(constants, site);
  return emission.reason.empty() ? rewriter_.FindPlace(emission.call)
                                 : std::nullopt;
}

// A body is written for the model's opset, and must mean the same where it is.
std::string Fuser::CheckScope(const ir::Graph& graph) const {
  if (graph.function() == nullptr) return "";
  for (const ir::OpsetImport& import : graph.function()->opset_imports) {
    if (!import.domain.empty()) continue;
    const int64_t model = model_.OpsetVersion("").value_or(0);
    if (import.version == model) return "";
    return fmt::format("the function imports opset {}, the model {}",
                       import.version, model);
  }
  return "";
}

bool IsSameFunction(const ir::Function& a, const ir::Function& b) {
  const auto imports = [](const ir::Function& function) {
    std::vector<std::pair<std::string, int64_t>> pairs;
    for (const ir::OpsetImport& import : function.opset_imports) {
      pairs.emplace_back(import.domain, import.version);
    }
    std::sort(pairs.begin(), pairs.end());
    return pairs;
  };
  return a.attributes == b.attributes && imports(a) == imports(b) &&
         BodyKey(a) == BodyKey(b);
}

// The model has each body once.
std::string Fuser::AddFunction(std::list<ir::Function>& function) {
  if (function.empty()) return "";
  const std::string name = function.front().name;
  const ir::Function* known = model_.FindFunction(kFusedDomain, name);
  if (known == nullptr) {
    rewriter_.AddFunction(std::move(function));
    return "";
  }
  if (IsSameFunction(*known, function.front())) return "";
  return fmt::format("the model has another function named '{}'", name);
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

// A reason that holds for every site of the model.
std::string CheckImports(const ir::Model& model) {
  const std::optional<int64_t> opset = model.OpsetVersion("");
  if (!opset) return "the model imports no version of the default domain";
  if (*opset < kOldestOpset || *opset > kNewestOpset) {
    return fmt::format("opset {} is not known, expected {} to {}", *opset,
                       kOldestOpset, kNewestOpset);
  }
  const std::optional<int64_t> ours = model.OpsetVersion(kFusedDomain);
  if (!ours || *ours == kFusedDomainVersion) return "";
  return fmt::format("the model imports {} in version {}, expected {}",
                     kFusedDomain, *ours, kFusedDomainVersion);
}

// Functions that this pass made need a version that knows functions.
int64_t RaisedIrVersion(const ir::Model& model) {
  const bool has_new_function =
      std::any_of(model.functions.begin(), model.functions.end(),
                  [](const ir::Function& function) {
                    return function.source == ir::kNoSource;
                  });
  return has_new_function ? std::max(model.ir_version, kFunctionsIrVersion)
                          : model.ir_version;
}

void AddNotes(const ir::Model& model, PassContext& context) {
  const int fused = context.report.Count(Verdict::kFused);
  const TargetRow& target = FindTarget(context.target);
  if (fused > 0 && !target.is_exact) {
    context.report.notes.push_back(fmt::format(
        "target {} rounds differently: results are not bit for bit the input's",
        target.name));
  }
  const int64_t raised = RaisedIrVersion(model);
  if (raised == model.ir_version) return;
  context.report.notes.push_back(fmt::format(
      "ir_version raised from {} to {}: older ones have no functions",
      model.ir_version, raised));
}

}  // namespace

absl::Status FuseAddRmsNorm(ir::Model& model, PassContext& context) {
  Constants constants(model);
  absl::StatusOr<std::vector<Site>> sites =
      FindSites(model, constants, context);
  if (!sites.ok()) return sites.status();

  const std::string imports_reason = CheckImports(model);
  Fuser fuser(model, context);
  for (Site& site : *sites) {
    if (site.candidate.verdict == Verdict::kFused && !imports_reason.empty()) {
      site.candidate.verdict = Verdict::kNotFused;
      site.candidate.reason = imports_reason;
    }
    if (site.candidate.verdict == Verdict::kFused) fuser.Fuse(constants, site);
  }
  for (Site& site : *sites) {
    if (fuser.IsPartOfAnother(site)) continue;
    Candidate& candidate = site.candidate;
    if (candidate.verdict == Verdict::kNotFused && candidate.hint.empty())
      candidate.hint = HintFor(candidate.reason);
    context.report.candidates.push_back(std::move(site.candidate));
  }
  AddNotes(model, context);
  model.ir_version = RaisedIrVersion(model);
  return absl::OkStatus();
}

}  // namespace addnorm::passes
