// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/ir/model.h"

namespace addnorm::ir {

std::optional<int64_t> Model::OpsetVersion(std::string_view domain) const {
  for (const OpsetImport& import : opset_imports) {
    if (import.domain == domain) return import.version;
  }
  return std::nullopt;
}

const Function* Model::FindFunction(std::string_view domain,
                                    std::string_view name,
                                    std::string_view overload) const {
  for (const Function& function : functions) {
    if (function.name == name && function.domain == domain &&
        function.overload == overload) {
      return &function;
    }
  }
  return nullptr;
}

std::vector<Graph*> Model::AllGraphs() {
  std::vector<Graph*> graphs{&graph};
  for (Function& function : functions) graphs.push_back(&function.body);
  for (size_t i = 0; i < graphs.size(); ++i) {
    for (const Node& node : graphs[i]->nodes()) {
      for (Graph* inner : node.subgraphs()) graphs.push_back(inner);
    }
  }
  return graphs;
}

}  // namespace addnorm::ir
