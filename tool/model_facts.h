// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What can be said about a model at a glance: versions, inputs and outputs,
// operators, sizes of weights. Gathered before a pass edits the model.
//
//   const OpCounts before = CountOps(model);
#ifndef ADDNORM_TOOL_MODEL_FACTS_H_
#define ADDNORM_TOOL_MODEL_FACTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "passes/ir/model.h"
#include "tool/term.h"

namespace addnorm::tool {

// Nodes by operator, "Add" or "com.microsoft.SkipLayerNormalization"; std::map,
// because everything printed is sorted.
using OpCounts = std::map<std::string, int64_t>;

// In the main graph, subgraphs and functions. Functions of fused ops are left
// out, also where they came with the file: their bodies are the nodes that were
// fused, once for many sites.
OpCounts CountOps(ir::Model& model);

// "Add", "ai.addnorm.AddRmsNorm": an operator with its domain.
std::string OpName(const ir::Node& node);

int64_t Total(const OpCounts& counts);

struct WeightFacts {
  int64_t count = 0;
  uint64_t bytes = 0;
};

struct ModelFacts {
  int64_t ir_version = 0;
  std::string producer_name;  // "" where the file does not say
  std::string producer_version;
  // Versions by domain, "" for the default one.
  std::vector<std::pair<std::string, int64_t>> opsets;
  // Names and types.
  std::vector<std::pair<std::string, std::string>> inputs;
  std::vector<std::pair<std::string, std::string>> outputs;
  std::vector<std::string> functions;
  OpCounts ops;
  WeightFacts embedded;  // initializers in the model file
  WeightFacts external;  // initializers in files beside it
};

ModelFacts GatherFacts(ir::Model& model);
std::string ToText(const ModelFacts& facts, const Terminal& terminal);
nlohmann::ordered_json ToJson(const ModelFacts& facts);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_MODEL_FACTS_H_
