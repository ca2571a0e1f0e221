// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A whole model: main graph, model-local functions, opset imports.
//
// It is what passes work on. It does not hold weights, and not the fields that
// no pass needs (metadata, training info): those stay in the file and are
// copied from there by the exporter.
#ifndef ADDNORM_PASSES_IR_MODEL_H_
#define ADDNORM_PASSES_IR_MODEL_H_

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "passes/ir/graph.h"

namespace addnorm::ir {

// The domain is "" for the default domain, however the file spells it.
struct OpsetImport {
  std::string domain;
  int64_t version = 0;
  bool added = false;  // by a pass: the exporter writes it
};

class Function {
 public:
  std::string domain;
  std::string name;
  std::string overload;
  std::string doc_string;
  // Names only: an attribute without default that each call must give.
  std::vector<std::string> attributes;
  // Attributes that a call may leave out, as they are then; graphs and tensors
  // are opaque here.
  std::vector<Attribute> attribute_defaults;
  std::vector<OpsetImport> opset_imports;
  Source source =
      kNoSource;  // kNoSource: a pass made it, the exporter writes it
  Graph body;     // its inputs and outputs are the function's

  // nullptr if it has no default for that attribute.
  const Attribute* FindDefault(std::string_view attribute) const;
};

// Fetches elements of tensors that are not inline. Implemented in proto/.
class TensorReader {
 public:
  virtual ~TensorReader() = default;
  // The tensor's elements as InlineElements has them. Errors name the tensor.
  virtual absl::StatusOr<std::string> Read(const Tensor& tensor) = 0;
};

class Model {
 public:
  Model() { graph.SetPlace(this, nullptr, nullptr); }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  std::string path;  // for messages
  int64_t ir_version = 0;
  std::string producer_name;
  std::string producer_version;
  std::vector<OpsetImport> opset_imports;
  Graph graph;
  std::list<Function> functions;  // in file order, callees of new ones first
  std::unique_ptr<TensorReader> reader;

  // Version of the domain that the model imports; nullopt if it does not.
  std::optional<int64_t> OpsetVersion(std::string_view domain) const;
  // Amortised constant time, also while functions are added.
  const Function* FindFunction(std::string_view domain, std::string_view name,
                               std::string_view overload = "") const;

  // Every graph: the main one, function bodies, and all subgraphs, outer before
  // inner.
  std::vector<Graph*> AllGraphs();

 private:
  // Rebuilt where functions were added; never removed from.
  mutable absl::flat_hash_map<std::string, const Function*> functions_by_name_;
};

// The version of the node's domain that holds where it is: in a function, by
// the function's imports. 0 if the domain is not imported.
int64_t OpsetOf(const Node& node);

}  // namespace addnorm::ir

#endif  // ADDNORM_PASSES_IR_MODEL_H_
