// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of value_numbering.h: one graph of one model, its nodes numbered
// in order. Only the files graph_numbering_*.cc and value_numbering.cc include
// it.
//
//   GraphNumbering graph(numbering, model, side, nullptr, nullptr, 0);
//   RETURN_IF_ERROR(graph.Run(model.graph));
#ifndef ADDNORM_PASSES_GRAPH_NUMBERING_H_
#define ADDNORM_PASSES_GRAPH_NUMBERING_H_

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "passes/value_numbering.h"

namespace addnorm::passes {

template <size_t N>
bool HasTypeOf(const std::string_view (&names)[N], const ir::Node& node) {
  return std::find(std::begin(names), std::end(names), node.op_type()) !=
         std::end(names);
}

// Of ONNX's own domain.
template <size_t N>
bool IsOneOf(const std::string_view (&names)[N], const ir::Node& node) {
  return node.domain().empty() && HasTypeOf(names, node);
}

// Text in a key: no other text's continuation.
std::string Quoted(std::string_view text);

// The attributes of a call, through which its function's references are
// resolved.
struct CallScope {
  const ir::Node* call = nullptr;
  const ir::Function* function = nullptr;
  const CallScope* outer = nullptr;
};

// One graph of one model: numbers of its values, and of the outer graphs'.
class GraphNumbering {
 public:
  GraphNumbering(ValueNumbering& numbering, const ir::Model& model, Side side,
                 const CallScope* call, const GraphNumbering* outer, int depth)
      : numbering_(numbering),
        model_(model),
        side_(side),
        call_(call),
        outer_(outer),
        depth_(depth) {}

  absl::Status Run(const ir::Graph& graph);
  void Set(const ir::Value* value, Number number) { numbers_[value] = number; }
  Number Get(const ir::Value* value) const;
  std::vector<Number> Outputs(const ir::Graph& graph) const;
  const absl::flat_hash_map<const ir::Value*, Number>& numbers() const {
    return numbers_;
  }
  void SetCallDepth(int depth) { call_depth_ = depth; }

 private:
  absl::Status AddInitializers(const ir::Graph& graph);
  absl::StatusOr<Number> NumberTensor(const ir::Tensor& tensor,
                                      const ir::Value* value);
  absl::StatusOr<Number> NumberOpaque(const ir::Tensor& tensor,
                                      const ir::OpaqueElements& elements,
                                      const ir::Value* value);
  absl::StatusOr<Number> NumberSparse(const ir::SparseTensor& sparse,
                                      const ir::Value* value);
  absl::StatusOr<Number> NumberByContents(const ir::Tensor& tensor,
                                          const ir::Value* value);
  Number InternSmall(const ir::Tensor& tensor, const ir::Value* value);
  absl::Status NumberNode(const ir::Node& node);
  absl::Status NumberCall(const ir::Node& node, const ir::Function& function);
  absl::StatusOr<std::vector<Number>> NumberResults(
      const ir::Node& call, const ir::Function& function,
      std::vector<Number> operands, const std::string& attributes);
  absl::StatusOr<std::vector<Number>> NumberWhole(
      const ir::Node& call, const ir::Function& function,
      const std::vector<Number>& operands, const std::string& attributes);
  absl::StatusOr<std::vector<Number>> NumberBody(
      const ir::Node& call, const ir::Function& function,
      const std::vector<Number>& operands);
  absl::StatusOr<bool> NumberForwarded(const ir::Node& node,
                                       const std::vector<Number>& operands);
  absl::StatusOr<Number> NumberConstant(const ir::Node& node);
  absl::StatusOr<std::string> AttributesKey(const ir::Node& node,
                                            const ir::Function* function,
                                            std::string& label);
  absl::StatusOr<std::string> ValueKey(const ir::Attribute& attribute);
  absl::StatusOr<std::string> GraphKey(const ir::Graph& graph);
  // The attribute that a reference stands for in this call; nullptr: absent.
  // Itself where it is no reference, or outside of calls.
  const ir::Attribute* Resolve(const ir::Attribute& attribute) const;
  void LoosenRanks(const ir::Node& node, std::vector<Number>& operands);
  size_t LeastRank(const ir::Node& node, const std::vector<Number>& operands);
  bool KeepsDims(const ir::Node& node) const;
  bool HasAxis(const ir::Node& node, const std::vector<Number>& operands) const;
  std::string PlaceInCalls(const ir::Node& node) const;
  bool IsRandom(const ir::Node& node, int64_t version) const;
  int64_t SchemaVersion(const ir::Node& node) const;

  ValueNumbering& numbering_;
  const ir::Model& model_;
  Side side_;
  const CallScope* call_;
  const GraphNumbering* outer_;
  // How many subgraphs it is in, those around calls included: parameters of
  // subgraphs are told apart by it.
  int depth_;
  int call_depth_ = 0;
  absl::flat_hash_map<const ir::Value*, Number> numbers_;
};

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_GRAPH_NUMBERING_H_
