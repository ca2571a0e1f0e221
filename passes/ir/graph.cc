// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/ir/graph.h"

#include <algorithm>
#include <limits>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/ir/check.h"
#include "passes/ir/tensor.h"

namespace addnorm::ir {

std::optional<int64_t> Tensor::element_count() const {
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim != 0 && count > std::numeric_limits<int64_t>::max() / dim)
      return std::nullopt;
    count *= dim;
  }
  return count;
}

const std::string* Tensor::inline_bytes() const {
  const auto* held = std::get_if<InlineElements>(&elements);
  return held == nullptr ? nullptr : &held->bytes;
}

const Attribute* Node::attribute(std::string_view attribute_name) const {
  for (const Attribute& a : attributes) {
    if (a.name == attribute_name) return &a;
  }
  return nullptr;
}

std::vector<Graph*> Node::subgraphs() const {
  std::vector<Graph*> graphs;
  for (const Attribute& a : attributes) {
    if (const auto* one = a.get<std::unique_ptr<Graph>>())
      graphs.push_back(one->get());
    if (const auto* many = a.get<std::vector<std::unique_ptr<Graph>>>()) {
      for (const auto& graph : *many) graphs.push_back(graph.get());
    }
  }
  return graphs;
}

std::string Node::Describe() const {
  if (!name.empty()) return fmt::format("{} '{}'", op_type_, name);
  const auto made =
      std::find_if(outputs_.begin(), outputs_.end(),
                   [](const Value* value) { return value != nullptr; });
  if (made == outputs_.end()) return op_type_;
  return fmt::format("{} making '{}'", op_type_, (*made)->name());
}

Value* Graph::FindValue(std::string_view value_name) const {
  const auto found = by_name_.find(value_name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::vector<Value*> Graph::values() const {
  std::vector<Value*> all;
  for (const Value& value : values_) {
    if (value.graph_ != nullptr) all.push_back(const_cast<Value*>(&value));
  }
  return all;
}

Value* Graph::AddValue(std::string value_name) {
  Value* value = &values_.emplace_back(this, std::move(value_name));
  const bool is_new = by_name_.emplace(value->name(), value).second;
  ADDNORM_CHECK(is_new, "two values of one name in a graph");
  return value;
}

Value* Graph::AddInput(std::string value_name) {
  Value* value = AddValue(std::move(value_name));
  value->is_input_ = true;
  inputs_.push_back(value);
  return value;
}

void Graph::AddOutput(Value* value) {
  ++value->output_count_;
  outputs_.push_back(value);
}

void Graph::SetInitializer(Value* value, std::unique_ptr<Tensor> tensor,
                           Source message) {
  value->initializer_ = std::move(tensor);
  value->initializer_source_ = message;
}

void Graph::SetSparseInitializer(Value* value,
                                 std::unique_ptr<SparseTensor> tensor,
                                 Source message) {
  value->sparse_ = std::move(tensor);
  value->initializer_source_ = message;
}

Node* Graph::AddNode(std::string domain, std::string op_type, Node* before) {
  const auto place = before == nullptr ? nodes_.end() : before->self_;
  const auto made =
      nodes_.emplace(place, this, std::move(domain), std::move(op_type));
  made->self_ = made;
  SetOrders(made, 1);
  return &*made;
}

void Graph::AddNodeInput(Node* node, Value* value) {
  if (value != nullptr)
    value->uses_.push_back({node, static_cast<int>(node->inputs_.size())});
  node->inputs_.push_back(value);
}

void Graph::AddNodeOutput(Node* node, Value* value) {
  if (value != nullptr) {
    ADDNORM_CHECK(value->producer_ == nullptr, "a value has two producers");
    value->producer_ = node;
    value->producer_index_ = static_cast<int>(node->outputs_.size());
  }
  node->outputs_.push_back(value);
}

void Graph::Detach(Value* value) {
  if (value->producer_ == nullptr) return;
  value->producer_->outputs_[static_cast<size_t>(value->producer_index_)] =
      nullptr;
  value->producer_ = nullptr;
  value->producer_index_ = -1;
}

void Graph::EraseNode(Node* node) {
  edited_ = true;
  for (size_t i = 0; i < node->inputs_.size(); ++i) {
    if (node->inputs_[i] == nullptr) continue;
    auto& uses = node->inputs_[i]->uses_;
    const auto use =
        std::find(uses.begin(), uses.end(), Use{node, static_cast<int>(i)});
    *use = uses.back();
    uses.pop_back();
  }
  for (Value* value : node->outputs_) {
    if (value != nullptr) Detach(value);
  }
  if (node->source != kNoSource) erased_sources_.push_back(node->source);
  nodes_.erase(node->self_);
}

void Graph::EraseValue(Value* value) {
  ADDNORM_CHECK(value->uses_.empty() && value->output_count_ == 0 &&
                    value->producer_ == nullptr,
                "an erased value is still in use");
  edited_ = true;
  if (value->initializer_source_ != kNoSource) {
    erased_sources_.push_back(value->initializer_source_);
  }
  erased_sources_.insert(erased_sources_.end(),
                         value->value_info_sources_.begin(),
                         value->value_info_sources_.end());
  by_name_.erase(value->name_);
  value->graph_ = nullptr;
  value->initializer_.reset();
}

void Graph::NumberNodes() {
  double number = 0;
  for (Node& node : nodes_) node.order = number++;
}

void Graph::MoveNodes(const std::vector<Node*>& nodes, Node* before) {
  if (nodes.empty()) return;
  edited_ = true;
  const auto place = before == nullptr ? nodes_.end() : before->self_;
  for (Node* node : nodes) nodes_.splice(place, nodes_, node->self_);
  SetOrders(nodes.front()->self_, nodes.size());
}

Node* Graph::Next(const Node* node) const {
  const auto next = std::next(node->self_);
  return next == nodes_.end() ? nullptr : &*next;
}

void Graph::SetOrders(std::list<Node>::iterator first, size_t count) {
  const auto end = std::next(first, static_cast<std::ptrdiff_t>(count));
  const auto gaps = static_cast<double>(count + 1);
  double low = first == nodes_.begin() ? -1 : std::prev(first)->order;
  if (first == nodes_.begin() && end != nodes_.end()) low = end->order - gaps;
  const double high = end == nodes_.end() ? low + gaps : end->order;
  const double step = (high - low) / gaps;
  double last = low;
  for (auto node = first; node != end; ++node) {
    const double order = last + step;
    // Some fifty insertions in one place use up the digits of a double.
    if (order <= last || order >= high) return NumberNodes();
    node->order = last = order;
  }
}

namespace {

template <typename T>
std::string Join(const std::vector<T>& items) {
  return fmt::format("[{}]", fmt::join(items, ", "));
}

std::string ToString(const Tensor& tensor) {
  return fmt::format("{}[{}]", DataTypeName(tensor.type),
                     fmt::join(tensor.dims, ","));
}

struct AttributePrinter {
  std::string operator()(const OpaqueAttribute&) const { return "..."; }
  std::string operator()(int64_t value) const {
    return fmt::format("{}", value);
  }
  std::string operator()(float value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const {
    return fmt::format("\"{}\"", value);
  }
  std::string operator()(const std::vector<int64_t>& values) const {
    return Join(values);
  }
  std::string operator()(const std::vector<float>& values) const {
    return Join(values);
  }
  std::string operator()(const std::vector<std::string>& values) const {
    return values.empty()
               ? "[]"
               : fmt::format("[\"{}\"]", fmt::join(values, "\", \""));
  }
  std::string operator()(const Tensor& tensor) const {
    return ToString(tensor);
  }
  std::string operator()(const std::vector<Tensor>& tensors) const {
    return fmt::format("[{} tensors]", tensors.size());
  }
  std::string operator()(const std::unique_ptr<Graph>& graph) const {
    return fmt::format("graph({} nodes)", graph->nodes().size());
  }
  std::string operator()(
      const std::vector<std::unique_ptr<Graph>>& graphs) const {
    return fmt::format("[{} graphs]", graphs.size());
  }
};

}  // namespace

std::string ToString(const Attribute& attribute) {
  if (!attribute.ref_attr_name.empty()) return "@" + attribute.ref_attr_name;
  return std::visit(AttributePrinter{}, attribute.value);
}

}  // namespace addnorm::ir
