// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Facts about standard operators that matching needs: which are Casts, which
// commute, attribute defaults, where the axes stand.
#ifndef ADDNORM_PASSES_OPERATORS_H_
#define ADDNORM_PASSES_OPERATORS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/constants.h"
#include "passes/ir/model.h"

namespace addnorm::passes {

// False where a local function redefines an operator of the default domain.
bool IsStandardOp(const ir::Model& model, const ir::Node& node);

// A Cast to a float type, a CastLike or an Identity: values pass, at most
// rounded.
bool IsFloatCast(const ir::Model& model, const ir::Node& node);

// The type that a Cast or CastLike makes, where it is known.
ir::DataType CastTarget(const ir::Node& cast);

bool IsCommutative(const ir::Node& node);

// Operators with an axes attribute or (newer opsets) an axes operand.
bool IsReduction(const ir::Node& node);

// Attributes of plain values: numbers, strings, small tensors, references.
bool IsCopyable(const ir::Attribute& attribute);

// The attribute, or the operator's default where absent; nullopt if it is no
// integer or has no default.
std::optional<int64_t> IntAttribute(const ir::Node& node,
                                    std::string_view name);

// AttributeProto.AttributeType, as ir::Attribute::type has it.
inline constexpr int32_t kFloatType = 1;
inline constexpr int32_t kIntType = 2;
inline constexpr int32_t kTensorType = 4;

// A norm that is one operator, and what its attributes default to.
struct NormOperator {
  std::string_view op;
  float epsilon;
  int64_t stash_type;
};

inline constexpr std::string_view kEpsilonAttribute = "epsilon";

// nullptr for any other node.
const NormOperator* FindNormOperator(const ir::Node& node);
const NormOperator* FindNormOperator(std::string_view op);

struct AxesOf {
  std::vector<int64_t> values;
  std::string reason;  // why they are not known: "axes: 'k' is not a constant"
};

// The axes of a reduction or the axis of a norm operator.
AxesOf ReadAxes(const ir::Node& node, Constants& constants);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_OPERATORS_H_
