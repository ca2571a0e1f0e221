// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The fused op of one site: its function (the Add and the matched nodes,
// verbatim), its name, and the call's operands. Pure: the model is not changed.
//
//   inputs   (a, b, scale), or (a, b) for a norm without weight; then epsilon,
//            if no float attribute can hold it, or a data file holds it
//   outputs  (y, sum)
//   name     AddRmsNorm_<variant>_<types>_<digest>, a function of the body
//   alone:
//            the same body has the same name in every model
//
// The digest stands for what the tags do not say: forms of constants, operand
// order, attributes written or absent.
#ifndef ADDNORM_PASSES_FUSED_OP_H_
#define ADDNORM_PASSES_FUSED_OP_H_

#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/ir/model.h"
#include "passes/matcher.h"

namespace addnorm::passes {

inline constexpr std::string_view kFusedDomain = "ai.addnorm";
inline constexpr int64_t kFusedDomainVersion = 1;

struct FusedOp {
  std::list<ir::Function>
      function;  // one element, to be spliced into the model
  std::vector<ir::Value*> operands;
  ir::Attribute
      epsilon;  // of the call: a float, or the attribute of its own caller
  std::string reason;  // why there is none, if `function` is empty

  const std::string& name() const { return function.front().name; }
};

// Epsilon as the call's attribute; nullopt if it must be an operand.
std::optional<ir::Attribute> EpsilonAttribute(const ir::Model& model,
                                              Constants& constants,
                                              const NormMatch& match);

// The op of an Add and the norm that reads its sum. `match` must have been
// found.
FusedOp BuildFusedOp(ir::Model& model, Constants& constants,
                     const ir::Node& add, const NormMatch& match);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_FUSED_OP_H_
