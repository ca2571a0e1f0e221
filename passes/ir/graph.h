// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The in-memory graph: values, nodes, attributes, subgraphs.
//
// A Graph owns its values and nodes; pointers to them stay valid until they are
// erased. A value knows its producer and every use, uses in subgraphs included
// (a captured value is used by the inner node, whose graph() tells where). The
// structure is changed by Rewriter (passes/rewriter.h) and built by the
// importer (proto/import.h); everything else only reads it. It is not a
// ModelProto: `source` numbers tie nodes and values to their messages in the
// file, so that the exporter can leave every byte alone that no pass touched.
//
//   for (const ir::Node& node : graph.nodes()) {
//     if (node.Is("", "Add")) Visit(*node.inputs()[0]);
//   }
#ifndef ADDNORM_PASSES_IR_GRAPH_H_
#define ADDNORM_PASSES_IR_GRAPH_H_

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/ir/tensor.h"
#include "passes/ir/type.h"

namespace addnorm::ir {

class Function;
class Graph;
class Model;
class Node;
class Value;

// The number of a message in the file (proto/wire.h); kNoSource for what a pass
// made.
using Source = int32_t;
inline constexpr Source kNoSource = -1;

// An attribute value that passes never look into (type protos, sparse tensors,
// …): its message as the elements of an opaque tensor.
struct OpaqueAttribute {
  Tensor message = {.name = {},
                    .type = DataType::kUndefined,
                    .dims = {},
                    .elements = OpaqueElements{}};
};

using AttributeValue =
    std::variant<OpaqueAttribute, int64_t, float, std::string,
                 std::vector<int64_t>, std::vector<float>,
                 std::vector<std::string>, Tensor, std::vector<Tensor>,
                 std::unique_ptr<Graph>, std::vector<std::unique_ptr<Graph>>>;

// AttributeProto.AttributeType by number; needed where value is a reference.
struct Attribute {
  std::string name;
  int32_t type = 0;
  AttributeValue value;
  std::string
      ref_attr_name;  // inside functions: the caller's attribute of this name
  Source source = kNoSource;

  template <typename T>
  const T* get() const {
    return ref_attr_name.empty() ? std::get_if<T>(&value) : nullptr;
  }
};

// node->inputs()[index] is the value.
struct Use {
  Node* node = nullptr;
  int index = 0;
  friend bool operator==(const Use&, const Use&) = default;
};

class Value {
 public:
  Value(Graph* graph, std::string name)
      : graph_(graph), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  Graph* graph() const { return graph_; }

  // The node that makes it, nullptr for inputs and initializers.
  Node* producer() const { return producer_; }
  int producer_index() const { return producer_index_; }

  // Every node input that reads it, in subgraphs too; order of no meaning.
  const std::vector<Use>& uses() const { return uses_; }

  // How often output lists name it: its own graph's, or an inner one's (such
  // files exist).
  int output_count() const { return output_count_; }
  bool is_graph_output() const { return output_count_ > 0; }
  // An input of its graph or function.
  bool is_input() const { return is_input_; }
  // Its initializer, also where it is an input too (then a caller may override
  // it).
  const Tensor* initializer() const { return initializer_.get(); }
  const SparseTensor* sparse_initializer() const { return sparse_.get(); }
  bool is_sparse_initializer() const { return sparse_ != nullptr; }
  // Named outside of nodes, in a quantization annotation or in training_info:
  // it must stay.
  bool is_pinned() const { return is_pinned_; }

  TensorType type;

 private:
  friend class Graph;
  Graph* graph_;
  std::string name_;
  Node* producer_ = nullptr;
  int producer_index_ = -1;
  std::vector<Use> uses_;
  int output_count_ = 0;
  bool is_input_ = false;
  bool is_pinned_ = false;
  std::unique_ptr<Tensor> initializer_;
  std::unique_ptr<SparseTensor> sparse_;
  Source initializer_source_ = kNoSource;
  std::vector<Source> value_info_sources_;
};

class Node {
 public:
  Node(Graph* graph, std::string domain, std::string op_type)
      : graph_(graph),
        domain_(std::move(domain)),
        op_type_(std::move(op_type)) {}

  // The default domain is the empty string here, however the file spells it.
  const std::string& domain() const { return domain_; }
  const std::string& op_type() const { return op_type_; }
  bool Is(std::string_view domain, std::string_view op_type) const {
    return op_type_ == op_type && domain_ == domain;
  }
  Graph* graph() const { return graph_; }

  // An absent optional operand (the empty name) is nullptr.
  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  // nullptr where absent, so that trailing operands need no size check.
  Value* input(size_t i) const {
    return i < inputs_.size() ? inputs_[i] : nullptr;
  }
  Value* output(size_t i) const {
    return i < outputs_.size() ? outputs_[i] : nullptr;
  }

  const Attribute* attribute(std::string_view name) const;

  // Graphs in attributes, in order.
  std::vector<Graph*> subgraphs() const;

  // "Add '/layers.0/Add'", or "Add making 'x'" where the node has no name.
  std::string Describe() const;

  std::string name;
  std::string overload;
  std::vector<Attribute> attributes;
  // Grows along the graph's node list; see Graph::NumberNodes.
  double order = 0;
  Source source = kNoSource;
  // For a node that a pass made: the message whose doc string and metadata it
  // takes over.
  Source inherits_from = kNoSource;
  // The file ties device configurations to it; a rewrite would have to carry
  // them.
  bool has_device_configurations = false;

 private:
  friend class Graph;
  Graph* graph_;
  std::string domain_;
  std::string op_type_;
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  std::list<Node>::iterator self_;
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // ---- reading
  const std::list<Node>& nodes() const { return nodes_; }
  std::list<Node>& nodes() { return nodes_; }
  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  // The value of that name made in this graph (not in an outer one); nullptr if
  // none.
  Value* FindValue(std::string_view name) const;
  // Its values in the order in which they were added; erased ones are left out.
  std::vector<Value*> values() const;

  Graph* outer() const { return owner_ == nullptr ? nullptr : owner_->graph(); }
  Node* owner() const { return owner_; }  // the node whose attribute it is
  Function* function() const {
    return function_;
  }  // the function whose body it is in
  Model* model() const { return model_; }

  std::string name;
  Source source = kNoSource;

  // ---- building and editing (the importer and Rewriter; see rewriter.h for
  // passes)
  void SetPlace(Model* model, Function* function, Node* owner) {
    model_ = model;
    function_ = function;
    owner_ = owner;
  }
  Value* AddValue(std::string name);
  Value* AddInput(std::string name);
  void AddOutput(Value* value);
  void SetInitializer(Value* value, std::unique_ptr<Tensor> tensor,
                      Source message);
  void SetSparseInitializer(Value* value, std::unique_ptr<SparseTensor> tensor,
                            Source message);
  void MarkPinned(Value* value) { value->is_pinned_ = true; }
  void AddValueInfo(Value* value, Source message) {
    value->value_info_sources_.push_back(message);
  }

  // Appends a node, or inserts it before another one, with an order in between.
  Node* AddNode(std::string domain, std::string op_type,
                Node* before = nullptr);
  void AddNodeInput(Node* node, Value* value);  // nullptr: absent
  // Makes `value` an output of `node`; it must have no producer. nullptr:
  // absent.
  void AddNodeOutput(Node* node, Value* value);
  // Takes a value away from its producer (which keeps an absent output there).
  void Detach(Value* value);
  // Removes a node, its uses and its hold on its outputs; sources are
  // remembered.
  void EraseNode(Node* node);
  // Removes a value that nothing makes, reads or returns.
  void EraseValue(Value* value);
  // Sets each node's order to its place in the list: 0, 1, 2, …
  void NumberNodes();
  // Moves nodes before another one (to the end for nullptr), in their order in
  // the vector; orders keep growing.
  void MoveNodes(const std::vector<Node*>& nodes, Node* before);
  // The node after it, nullptr at the end.
  Node* Next(const Node* node) const;

  // Messages of erased nodes, initializers and value_info entries of this
  // graph.
  const std::vector<Source>& erased_sources() const { return erased_sources_; }
  bool edited() const { return edited_; }

 private:
  // Spreads the orders of `count` nodes from `first` on over the gap they are
  // in.
  void SetOrders(std::list<Node>::iterator first, size_t count);

  Model* model_ = nullptr;
  Function* function_ = nullptr;
  Node* owner_ = nullptr;
  std::list<Node> nodes_;
  std::deque<Value> values_;
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  absl::flat_hash_map<std::string_view, Value*> by_name_;
  std::vector<Source> erased_sources_;
  bool edited_ = false;
};

// "float", "[1, 2]", "graph(3 nodes)": an attribute's value for people.
std::string ToString(const Attribute& attribute);

}  // namespace addnorm::ir

#endif  // ADDNORM_PASSES_IR_GRAPH_H_
