// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/ir/model.h"

#include "fmt/format.h"

namespace addnorm::ir {

namespace {

std::optional<int64_t> FindVersion(const std::vector<OpsetImport>& imports,
                                   std::string_view domain) {
  for (const OpsetImport& import : imports) {
    if (import.domain == domain) return import.version;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> Model::OpsetVersion(std::string_view domain) const {
  return FindVersion(opset_imports, domain);
}

int64_t OpsetOf(const Node& node) {
  const Graph& graph = *node.graph();
  const auto& imports = graph.function() != nullptr
                            ? graph.function()->opset_imports
                            : graph.model()->opset_imports;
  return FindVersion(imports, node.domain()).value_or(0);
}

const Function* Model::FindFunction(std::string_view domain,
                                    std::string_view name,
                                    std::string_view overload) const {
  const auto key = [](std::string_view d, std::string_view n,
                      std::string_view o) {
    return fmt::format("{}\n{}\n{}", d, n, o);
  };
  if (functions_by_name_.size() != functions.size()) {
    functions_by_name_.clear();
    for (const Function& f : functions) {
      functions_by_name_.emplace(key(f.domain, f.name, f.overload), &f);
    }
  }
  if (functions_by_name_.empty()) return nullptr;
  const auto found = functions_by_name_.find(key(domain, name, overload));
  return found == functions_by_name_.end() ? nullptr : found->second;
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

const Attribute* Function::FindDefault(std::string_view attribute) const {
  for (const Attribute& fallback : attribute_defaults) {
    if (fallback.name == attribute) return &fallback;
  }
  return nullptr;
}

}  // namespace addnorm::ir
