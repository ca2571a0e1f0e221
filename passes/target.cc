// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/target.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "passes/fused_op.h"
#include "passes/operators.h"

namespace addnorm::passes {
namespace {

constexpr int64_t kRmsNormalizationOpset = 23;

// The nodes of the norm that nothing else needs.
std::vector<ir::Node*> OwnNodes(const NormMatch& norm) {
  std::vector<ir::Node*> nodes;
  for (ir::Node* node : norm.nodes) {
    const auto& shared = norm.shared;
    if (std::find(shared.begin(), shared.end(), node) == shared.end()) {
      nodes.push_back(node);
    }
  }
  return nodes;
}

CallReplacement SiteReplacement(const Site& site) {
  CallReplacement call;
  call.root = site.add;
  call.nodes = OwnNodes(site.norm);
  call.nodes.push_back(site.add);
  call.results = {site.norm.y, site.norm.x};
  return call;
}

Emission EmitPortable(ir::Model& model, Constants& constants,
                      const Site& site) {
  Emission emission;
  FusedOp op = BuildFusedOp(model, constants, *site.add, site.norm);
  emission.reason = op.reason;
  if (op.function.empty()) return emission;
  emission.call = SiteReplacement(site);
  emission.call.operands = op.operands;
  emission.call.domain = kFusedDomain;
  emission.call.op_type = op.name();
  emission.call.attributes.push_back(std::move(op.epsilon));
  emission.domain_version = kFusedDomainVersion;
  emission.function = std::move(op.function);
  return emission;
}

// ---- proofs for operators that round in their own way

std::string ProveTypes(const Site& site, bool allow_double) {
  const NormMatch& norm = site.norm;
  if (norm.scale == nullptr) return "the norm has no weight";
  if (norm.is_called_norm)
    return "what a called function makes of weight and epsilon is not known";
  const ir::TensorType& sum = norm.x->type;
  const ir::Value* values[] = {norm.x, site.add->input(0), site.add->input(1),
                               norm.scale, norm.y};
  for (const ir::Value* value : values) {
    if (!value->type.known()) {
      return fmt::format("the type of '{}' is unknown", value->name());
    }
    if (value->type.element != sum.element) {
      return fmt::format("'{}' is {}, the sum {}", value->name(),
                         ir::DataTypeName(value->type.element),
                         ir::DataTypeName(sum.element));
    }
  }
  if (sum.element == ir::DataType::kDouble && !allow_double) {
    return "there is no such operator for double";
  }
  return "";
}

bool IsSame(const ir::Dimension& a, const ir::Dimension& b) {
  if (a.value || b.value) return a.value == b.value;
  return !a.symbol.empty() && a.symbol == b.symbol;
}

std::string NoRow(const Site& site, const ir::Value& value) {
  return fmt::format(
      "the scale '{}' is not known to be one row of '{}': {} for {}",
      site.norm.scale->name(), value.name(), ToString(site.norm.scale->type),
      ToString(value.type));
}

std::string ProveScale(const Site& site) {
  const auto& sum = site.norm.x->type.shape;
  const auto& scale = site.norm.scale->type.shape;
  if (!sum || sum->empty()) {
    return fmt::format("the rank of '{}' is unknown", site.norm.x->name());
  }
  const bool is_row = scale && scale->size() == 1 && scale->back().value &&
                      sum->back().value == scale->back().value;
  if (!is_row) return NoRow(site, *site.norm.x);
  // What the file says of the sum may be stale: its operands count too.
  for (const ir::Value* operand : site.add->inputs()) {
    const auto& rows = operand->type.shape;
    if (rows && !rows->empty() && rows->back().value &&
        rows->back().value != scale->back().value)
      return NoRow(site, *operand);
  }
  return "";
}

std::string ProveEqualShapes(const Site& site) {
  const ir::Value* a = site.add->input(0);
  const ir::Value* b = site.add->input(1);
  const auto& shape_a = a->type.shape;
  const auto& shape_b = b->type.shape;
  const bool is_equal = shape_a && shape_b &&
                        std::equal(shape_a->begin(), shape_a->end(),
                                   shape_b->begin(), shape_b->end(), IsSame);
  if (is_equal) return "";
  return fmt::format("'{}' and '{}' are not known to have one shape: {}, {}",
                     a->name(), b->name(), ToString(a->type),
                     ToString(b->type));
}

// Epsilon as an attribute, which these operators want.
bool TakeEpsilon(ir::Model& model, Constants& constants, const Site& site,
                 Emission& emission) {
  auto epsilon = EpsilonAttribute(model, constants, site.norm);
  if (!epsilon) {
    emission.reason = "epsilon is not a constant that a float can hold";
    return false;
  }
  emission.call.attributes.push_back(*std::move(epsilon));
  return true;
}

Emission EmitOrt(ir::Model& model, Constants& constants, const Site& site) {
  Emission emission;
  emission.reason = ProveTypes(site, /*allow_double=*/false);
  if (emission.reason.empty()) emission.reason = ProveScale(site);
  if (emission.reason.empty()) emission.reason = ProveEqualShapes(site);
  if (!emission.reason.empty()) return emission;
  const ir::Value* operand = site.add->input(0);
  const size_t rank = operand->type.shape->size();
  if (rank != 2 && rank != 3) {
    emission.reason = fmt::format("'{}' has rank {}, the operator takes 2 or 3",
                                  operand->name(), rank);
    return emission;
  }
  emission.call = SiteReplacement(site);
  if (!TakeEpsilon(model, constants, site, emission)) return emission;
  emission.call.operands = {site.add->input(0), site.add->input(1),
                            site.norm.scale};
  // Outputs 1 and 2 are the mean and the inverse deviation, which nobody reads.
  emission.call.results = {site.norm.y, nullptr, nullptr, site.norm.x};
  emission.call.domain = "com.microsoft";
  emission.call.op_type = "SkipSimplifiedLayerNormalization";
  return emission;
}

Emission EmitOnnx(ir::Model& model, Constants& constants, const Site& site) {
  Emission emission;
  if (model.OpsetVersion("").value_or(0) < kRmsNormalizationOpset) {
    emission.reason =
        fmt::format("RMSNormalization needs opset {}, this is {}",
                    kRmsNormalizationOpset, model.OpsetVersion("").value_or(0));
    return emission;
  }
  ir::Node* last = site.norm.y->producer();
  if (last->Is("", "RMSNormalization")) {
    emission.reason = "the norm is an RMSNormalization already";
    emission.is_there = true;
    return emission;
  }
  emission.reason = ProveTypes(site, /*allow_double=*/true);
  if (emission.reason.empty()) emission.reason = ProveScale(site);
  if (!emission.reason.empty()) return emission;
  if (!TakeEpsilon(model, constants, site, emission)) return emission;
  CallReplacement& call = emission.call;
  call.root = last;
  call.nodes = OwnNodes(site.norm);
  call.operands = {site.norm.x, site.norm.scale};
  call.results = {site.norm.y};
  call.op_type = "RMSNormalization";
  const NormOperator& norm = *FindNormOperator(call.op_type);
  for (const auto& [name, value] : {std::pair<std::string, int64_t>{"axis", -1},
                                    {"stash_type", norm.stash_type}}) {
    call.attributes.push_back({name, kIntType, value, "", ir::kNoSource});
  }
  return emission;
}

constexpr TargetRow kTargets[] = {
    {Target::kPortable, "portable", "functions, bit for bit, for any runtime",
     true, EmitPortable},
    {Target::kOrt, "ort", "ONNX Runtime's Skip operator, rounds differently",
     false, EmitOrt},
    {Target::kOnnx, "onnx", "RMSNormalization (opset 23), rounds differently",
     false, EmitOnnx},
};

}  // namespace

std::span<const TargetRow> AllTargets() { return kTargets; }

const TargetRow& FindTarget(Target target) {
  return *std::find_if(
      std::begin(kTargets), std::end(kTargets),
      [target](const TargetRow& row) { return row.target == target; });
}

}  // namespace addnorm::passes
