// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What a model declares of its values (outputs and value_info) and a run does
// not make: another element type, another rank or fixed dimension. Symbolic
// dimensions are not judged, nor are inputs, which the executor checks.
//
//   FalseDeclarations found;
//   Executor::Create(model, {.observer = &found});  // and a run
//   for (const FalseDeclaration& one : found.all()) …
#ifndef ADDNORM_TOOL_FALSE_DECLARATIONS_H_
#define ADDNORM_TOOL_FALSE_DECLARATIONS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "passes/ir/graph.h"
#include "runtime/executor.h"

namespace addnorm::tool {

struct FalseDeclaration {
  const ir::Value* value = nullptr;
  std::string declared, computed;  // "float[2,n]"
  bool is_type = false;            // of the element type, not of the shape
};

// "Neg 'n': value 'y' is declared float[3], computed is float[2]".
std::string ToText(const FalseDeclaration& declaration);

class FalseDeclarations : public runtime::RunObserver {
 public:
  void AfterNode(const runtime::Step& step,
                 std::span<const runtime::Tensor> outputs) override;

  // Each value once, in the order in which they were computed.
  const std::vector<FalseDeclaration>& all() const { return all_; }
  // kInvalidArgument for the first of another element type: such a model is
  // none by the ONNX standard, and other runtimes refuse it.
  absl::Status status() const;

 private:
  std::vector<FalseDeclaration> all_;
  absl::flat_hash_set<const ir::Value*> seen_;
};

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_FALSE_DECLARATIONS_H_
