// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What an attribute is where a node does not give it, as ONNX's schemas say.
//
//   const ir::Attribute* axis = AttributeDefault("", "Softmax", 13, "axis");
#ifndef ADDNORM_PROTO_ATTRIBUTE_DEFAULT_H_
#define ADDNORM_PROTO_ATTRIBUTE_DEFAULT_H_

#include <cstdint>
#include <string_view>

#include "passes/ir/graph.h"

namespace addnorm::proto {

// Of an operator in a version of its domain's operator set. nullptr if it has
// no default, or if the schemas do not know the operator (other domains than
// ONNX's). Lives as long as the process; not for several threads at once.
const ir::Attribute* AttributeDefault(std::string_view domain,
                                      std::string_view op_type,
                                      int64_t opset_version,
                                      std::string_view attribute);

// The version in which the operator last changed, as of that operator set; that
// version itself for operators and sets that the schemas do not know.
int64_t OperatorSinceVersion(std::string_view domain, std::string_view op_type,
                             int64_t opset_version);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_ATTRIBUTE_DEFAULT_H_
