// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// How many nodes graphs and functions have when calls are replaced by what they
// call, without replacing any: a chain of functions that each call the next one
// twice doubles with each of them.
//
//   ir::ExpandedSizes sizes(model);
//   if (sizes.Of(model.graph) > kMost) …
#ifndef ADDNORM_PASSES_IR_EXPANDED_SIZE_H_
#define ADDNORM_PASSES_IR_EXPANDED_SIZE_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "passes/ir/model.h"

namespace addnorm::ir {

class ExpandedSizes {
 public:
  explicit ExpandedSizes(const Model& model) : model_(model) {}

  // Larger numbers, and those of functions that call themselves, are this one.
  static constexpr int64_t kMost = int64_t{1} << 60;

  // Nodes of subgraphs included.
  int64_t Of(const Graph& graph) { return Of(graph, 0); }
  int64_t Of(const Function& function) { return Of(function, 0); }

 private:
  int64_t Of(const Graph& graph, int depth);
  int64_t Of(const Function& function, int depth);

  const Model& model_;
  absl::flat_hash_map<const Function*, int64_t> functions_;
};

}  // namespace addnorm::ir

#endif  // ADDNORM_PASSES_IR_EXPANDED_SIZE_H_
