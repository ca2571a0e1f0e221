// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/attribute_default.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "onnx/defs/schema.h"

namespace addnorm::proto {
namespace {

using onnx::AttributeProto;

// Defaults are numbers, strings and lists of them; none is a tensor or graph.
std::unique_ptr<ir::Attribute> FromDefault(const AttributeProto& proto) {
  auto attribute = std::make_unique<ir::Attribute>();
  attribute->name = proto.name();
  attribute->type = proto.type();
  switch (proto.type()) {
    case AttributeProto::FLOAT:
      attribute->value = proto.f();
      break;
    case AttributeProto::INT:
      attribute->value = int64_t{proto.i()};
      break;
    case AttributeProto::STRING:
      attribute->value = proto.s();
      break;
    case AttributeProto::FLOATS:
      attribute->value =
          std::vector<float>(proto.floats().begin(), proto.floats().end());
      break;
    case AttributeProto::INTS:
      attribute->value =
          std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
      break;
    case AttributeProto::STRINGS:
      attribute->value = std::vector<std::string>(proto.strings().begin(),
                                                  proto.strings().end());
      break;
    default:
      return nullptr;
  }
  return attribute;
}

std::unique_ptr<ir::Attribute> LookUp(std::string_view domain,
                                      std::string_view op_type,
                                      int64_t opset_version,
                                      std::string_view attribute) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(
      std::string(op_type), static_cast<int>(opset_version),
      std::string(domain));
  if (schema == nullptr) return nullptr;
  const auto it = schema->attributes().find(std::string(attribute));
  if (it == schema->attributes().end()) return nullptr;
  return FromDefault(it->second.default_value);
}

}  // namespace

const ir::Attribute* AttributeDefault(std::string_view domain,
                                      std::string_view op_type,
                                      int64_t opset_version,
                                      std::string_view attribute) {
  static auto& known =
      *new absl::flat_hash_map<std::string, std::unique_ptr<ir::Attribute>>;
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}", domain, op_type, opset_version, attribute);
  const auto [it, added] = known.try_emplace(key);
  if (added) it->second = LookUp(domain, op_type, opset_version, attribute);
  return it->second.get();
}

int64_t OperatorSinceVersion(std::string_view domain, std::string_view op_type,
                             int64_t opset_version) {
  const auto& known =
      onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  const auto versions = known.find(std::string(domain));
  // What a version to come changes, nobody knows.
  if (versions == known.end() || opset_version > versions->second.second)
    return opset_version;
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(
      std::string(op_type), static_cast<int>(opset_version),
      std::string(domain));
  return schema == nullptr ? opset_version : schema->since_version();
}

}  // namespace addnorm::proto
