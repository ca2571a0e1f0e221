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

std::string ValueKey(const ir::Attribute& attribute) {
  const auto* tensor = attribute.get<ir::Tensor>();
  if (tensor == nullptr || tensor->inline_bytes() == nullptr)
    return ToString(attribute);
  return fmt::format("{}[{}]{}", static_cast<int>(tensor->type),
                     fmt::join(tensor->dims, ","),
                     absl::BytesToHexString(*tensor->inline_bytes()));
}

std::string Names(const std::vector<ir::Value*>& values) {
  std::string names;
  for (const ir::Value* value : values)
    names += (value == nullptr ? "" : value->name()) + ",";
  return names;
}

const ir::Function* CalledFunction(const ir::Function& caller,
                                   const ir::Node& node) {
  const ir::Model* model = caller.body.model();
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

std::string KeyOf(const ir::Function& function, Keys& callees, int depth);

// A callee's key stands in its callers' keys as a digest, each made once.
const std::string& CalleeKey(const ir::Function& callee, Keys& callees,
                             int depth) {
  if (const auto known = callees.find(&callee); known != callees.end())
    return known->second;
  std::string key = depth > kMaxDepth ? callee.domain + ":" + callee.name
                                      : KeyOf(callee, callees, depth);
  return callees[&callee] = fmt::format("{:016x}", Hash(key));
}

std::string KeyOf(const ir::Function& function, Keys& callees, int depth) {
  std::string key = Names(function.body.inputs()) + ">" +
                    Names(function.body.outputs()) + "\n";
  for (const ir::Node& node : function.body.nodes()) {
    fmt::format_to(std::back_inserter(key), "{}={}:{}:{}<",
                   Names(node.outputs()), node.domain(), node.op_type(),
                   node.overload);
    for (const ir::Attribute& attribute : node.attributes) {
      fmt::format_to(std::back_inserter(key), "{}:{}={};", attribute.name,
                     attribute.type, ValueKey(attribute));
    }
    fmt::format_to(std::back_inserter(key), ">({})", Names(node.inputs()));
    const ir::Function* callee = CalledFunction(function, node);
    if (callee != nullptr) key += CalleeKey(*callee, callees, depth + 1);
    key += "\n";
  }
  return key;
}

}  // namespace

std::string BodyKey(const ir::Function& function) {
  Keys callees;
  return KeyOf(function, callees, 0);
}

std::string BodyName(std::string_view variant, const ir::Function& function) {
  return fmt::format("AddRmsNorm_{}{}_{:08x}", variant, TypeTags(function),
                     Digest(BodyKey(function)));
}

}  // namespace addnorm::passes
