// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/body_name.h"

#include <iterator>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "fmt/format.h"

namespace addnorm::passes {
namespace {

using ir::DataType;
using Types = absl::flat_hash_map<const ir::Value*, DataType>;

std::string_view ShortName(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return "f32";
    case DataType::kFloat16:
      return "f16";
    case DataType::kBFloat16:
      return "bf16";
    case DataType::kDouble:
      return "f64";
    default:
      return "";
  }
}

DataType TypeOf(const Types& types, const ir::Value* value) {
  const auto found = types.find(value);
  return found == types.end() ? DataType::kUndefined : found->second;
}

DataType ResultType(const ir::Node& node, const Types& types) {
  if (const ir::Attribute* to = node.attribute("to")) {
    const auto* number = to->get<int64_t>();
    return number == nullptr ? DataType::kUndefined
                             : static_cast<DataType>(*number);
  }
  if (node.Is("", "Constant")) {
    const auto* tensor = node.attributes[0].get<ir::Tensor>();
    return tensor == nullptr ? DataType::kFloat : tensor->type;
  }
  if (node.Is("", "CastLike")) return TypeOf(types, node.input(1));
  const DataType first = node.input(0) == nullptr
                             ? DataType::kUndefined
                             : TypeOf(types, node.input(0));
  const bool is_binary =
      node.Is("", "Add") || node.Is("", "Mul") || node.Is("", "Div");
  if (first != DataType::kUndefined || !is_binary) return first;
  return TypeOf(types, node.input(1));
}

// What the body itself says of its types: through constants and Casts only.
std::string TypeTags(const ir::Function& function) {
  Types types;
  DataType computed = DataType::kUndefined;
  for (const ir::Node& node : function.body.nodes()) {
    const DataType type = ResultType(node, types);
    types[node.output(0)] = type;
    if (node.Is("", "Sqrt")) computed = type;
  }
  const ir::Value* y = function.body.outputs()[0];
  const DataType result = TypeOf(types, y);
  std::string tags;
  if (computed != DataType::kUndefined)
    tags += fmt::format("_{}", ShortName(computed));
  if (result != computed && result != DataType::kUndefined) {
    const bool is_late =
        y->producer()->Is("", "Cast") || y->producer()->Is("", "CastLike");
    tags +=
        fmt::format("_{}_{}", is_late ? "late" : "early", ShortName(result));
  }
  return tags;
}

std::string TensorKey(const ir::Tensor& tensor) {
  const std::string* bytes = tensor.inline_bytes();
  return fmt::format("{}[{}]{}", static_cast<int>(tensor.type),
                     fmt::join(tensor.dims, ","),
                     bytes == nullptr ? "" : absl::BytesToHexString(*bytes));
}

const ir::Function* CalledFunction(const ir::Graph& graph,
                                   const ir::Node& node) {
  const ir::Model* model = graph.model();
  return node.domain().empty() || model == nullptr
             ? nullptr
             : model->FindFunction(node.domain(), node.op_type(),
                                   node.overload);
}

// FNV-1a: stable over machines, versions and time.
uint64_t Hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

uint32_t Digest(std::string_view text) {
  const uint64_t hash = Hash(text);
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

// Functions that call functions …: deeper ones count by name.
constexpr int kMaxDepth = 64;

using Keys = absl::flat_hash_map<const ir::Function*, std::string>;

// Writes the key of one function. The values of a body that the pass made are
// called the same in every model; those of a called function are numbered in
// the order in which they appear, as their names are anybody's.
class KeyWriter {
 public:
  KeyWriter(Keys& callees, int depth) : callees_(callees), depth_(depth) {}

  std::string Write(const ir::Function& function) {
    if (depth_ > 0) AddHead(function);
    AddGraph(function.body);
    return std::move(key_);
  }

 private:
  void AddHead(const ir::Function& function);
  void AddGraph(const ir::Graph& graph);
  void AddNode(const ir::Node& node);
  void AddAttribute(const ir::Attribute& attribute);
  void AddValues(const std::vector<ir::Value*>& values);
  void AddValue(const ir::Value& value);
  void AddCallee(const ir::Function& callee);

  Keys& callees_;
  int depth_;
  std::string key_;
  absl::flat_hash_map<const ir::Value*, size_t> numbers_;
};

void KeyWriter::AddHead(const ir::Function& function) {
  for (const std::string& attribute : function.attributes)
    key_ += attribute + ";";
  for (const ir::OpsetImport& import : function.opset_imports)
    fmt::format_to(std::back_inserter(key_), "{}:{};", import.domain,
                   import.version);
}

void KeyWriter::AddGraph(const ir::Graph& graph) {
  AddValues(graph.inputs());
  key_ += ">";
  // Numbered by what makes them, where anything does.
  if (depth_ == 0) AddValues(graph.outputs());
  key_ += "\n";
  for (const ir::Node& node : graph.nodes()) AddNode(node);
  if (depth_ > 0) AddValues(graph.outputs());
}

void KeyWriter::AddNode(const ir::Node& node) {
  AddValues(node.outputs());
  fmt::format_to(std::back_inserter(key_), "={}:{}:{}<", node.domain(),
                 node.op_type(), node.overload);
  for (const ir::Attribute& attribute : node.attributes)
    AddAttribute(attribute);
  key_ += ">(";
  AddValues(node.inputs());
  key_ += ")";
  if (const ir::Function* callee = CalledFunction(*node.graph(), node))
    AddCallee(*callee);
  key_ += "\n";
}

void KeyWriter::AddAttribute(const ir::Attribute& attribute) {
  fmt::format_to(std::back_inserter(key_), "{}:{}=", attribute.name,
                 attribute.type);
  const auto* tensor = attribute.get<ir::Tensor>();
  const auto* graph = attribute.get<std::unique_ptr<ir::Graph>>();
  if (graph != nullptr) {
    AddGraph(**graph);
  } else if (tensor != nullptr && tensor->inline_bytes() != nullptr) {
    key_ += TensorKey(*tensor);
  } else {
    key_ += ToString(attribute);
  }
  key_ += ";";
}

void KeyWriter::AddValues(const std::vector<ir::Value*>& values) {
  for (const ir::Value* value : values) {
    if (value != nullptr) AddValue(*value);
    key_ += ",";
  }
}

void KeyWriter::AddValue(const ir::Value& value) {
  if (depth_ == 0) {
    key_ += value.name();
    return;
  }
  const auto [known, is_new] = numbers_.emplace(&value, numbers_.size());
  fmt::format_to(std::back_inserter(key_), "#{}", known->second);
  if (is_new && value.initializer() != nullptr)
    key_ += "=" + TensorKey(*value.initializer());
}

// A callee's key stands in its callers' keys as a digest, each made once.
void KeyWriter::AddCallee(const ir::Function& callee) {
  if (const auto known = callees_.find(&callee); known != callees_.end()) {
    key_ += known->second;
    return;
  }
  const std::string key = depth_ == kMaxDepth
                              ? callee.domain + ":" + callee.name
                              : KeyWriter(callees_, depth_ + 1).Write(callee);
  key_ += callees_[&callee] = fmt::format("{:016x}", Hash(key));
}

}  // namespace

std::string BodyKey(const ir::Function& function) {
  Keys callees;
  return KeyWriter(callees, 0).Write(function);
}

std::string BodyName(std::string_view variant, const ir::Function& function) {
  return fmt::format("AddRmsNorm_{}{}_{:08x}", variant, TypeTags(function),
                     Digest(BodyKey(function)));
}

}  // namespace addnorm::passes
