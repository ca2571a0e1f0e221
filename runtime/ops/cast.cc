// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Cast, CastLike and BitCast. What becomes of each element is in
// element_cast.h.
#include <string>

#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "runtime/element_cast.h"
#include "runtime/ops/groups.h"
#include "runtime/type_number.h"

namespace addnorm::runtime {
namespace {

absl::StatusOr<SmallFloatOptions> Options(const OpContext& op) {
  SmallFloatOptions options;
  options.saturate = op.attributes().Int("saturate", 1) != 0;
  const std::string mode = op.attributes().String("round_mode", "up");
  if (mode == "down") {
    options.power_rounding = PowerRounding::kDown;
  } else if (mode == "nearest") {
    options.power_rounding = PowerRounding::kNearest;
  } else if (mode != "up") {
    return OpContext::Invalid(
        "round_mode is '{}', expected up, down or nearest",
        ir::Printable(mode));
  }
  return options;
}

absl::Status CastTo(OpContext& op, ir::DataType type) {
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const SmallFloatOptions options, Options(op));
  if (x.type() == type) {
    op.SetOutput(0, x);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const ElementCast cast,
                   ElementCast::Create(x.type(), type, options));
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, type, x.dims()));
  cast.Run(x, *y, op.threads());
  return absl::OkStatus();
}

absl::StatusOr<ir::DataType> TargetType(const OpContext& op) {
  const int64_t to = op.attributes().Int("to", 0);
  const auto type = static_cast<ir::DataType>(to);
  if (to < 0 || to > 255 || ElementSize(type) == 0)
    return OpContext::Unsupported("elements of type {}", TypeNumberText(to));
  return type;
}

absl::Status Cast(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  ASSIGN_OR_RETURN(const ir::DataType type, TargetType(op));
  return CastTo(op, type);
}

absl::Status CastLike(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  return CastTo(op, op.input(1).type());
}

absl::Status BitCast(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const ir::DataType type, TargetType(op));
  if (ir::BitWidth(type) != ir::BitWidth(x.type())) {
    return OpContext::Invalid("elements of type {} have another width than {}",
                              ir::DataTypeName(x.type()),
                              ir::DataTypeName(type));
  }
  if (type == ir::DataType::kBool) {  // no other bytes than 0 and 1
    ASSIGN_OR_RETURN(const ElementCast cast,
                     ElementCast::Create(ir::DataType::kUint8, type));
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, type, x.dims()));
    cast.Run(x, *y, op.threads());
    return absl::OkStatus();
  }
  // Elements of less than a byte are held by value, so not by their bits.
  if (ir::BitWidth(type) < 8) {
    ASSIGN_OR_RETURN(Tensor y,
                     Tensor::FromBytes(type, x.dims(), x.ToBytes(), nullptr));
    op.SetOutput(0, std::move(y));
    return absl::OkStatus();
  }
  op.SetOutput(0, x.WithType(type, x.dims()));
  return absl::OkStatus();
}

constexpr OpRow kRows[] = {
    {"", "BitCast", BitCast, {{0, 0}}},
    {"", "Cast", Cast, {{0, 0}}},
    {"", "CastLike", CastLike, {{0, 0}}},
};

}  // namespace

OpTable CastOps() { return kRows; }

}  // namespace addnorm::runtime
