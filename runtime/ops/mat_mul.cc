// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/mat_mul.h"

#include "passes/ir/status_macros.h"
#include "runtime/ops/groups.h"

namespace addnorm::runtime {
namespace {

#define PRODUCT_TYPES ADDNORM_FLOAT_TYPES, int32_t, int64_t, uint32_t, uint64_t

absl::Status Multiply(OpContext& op, MatrixLayout a_layout,
                      MatrixLayout b_layout, float alpha) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& a = op.input(0);
  const Tensor& b = op.input(1);
  if (a.type() != b.type())
    return OpContext::Invalid("operands are {} and {}", Describe(a),
                              Describe(b));
  ASSIGN_OR_RETURN(const BatchedProduct product,
                   MakeBatchedProduct(a, b, a_layout, b_layout));
  return op.ForType<PRODUCT_TYPES>(a, [&]<typename T>() -> absl::Status {
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, a.type(), product.dims));
    return RunBatchedProduct<T>(
        product, a.data<T>(), b.data<T>(), y->mutable_data<T>(),
        static_cast<ComputeType<T>>(alpha), op.threads());
  });
}

absl::Status MatMul(OpContext& op) { return Multiply(op, {}, {}, 1.0F); }

absl::Status FusedMatMul(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const auto flag = [&op](std::string_view name) {
    return op.attributes().Int(name, 0) != 0;
  };
  const float alpha = op.attributes().Float("alpha", 1.0F);
  if (!ir::IsFloat(op.input(0).type()))
    return op.UnsupportedType(op.input(0).type());
  return Multiply(op, {flag("transA"), flag("transBatchA")},
                  {flag("transB"), flag("transBatchB")}, alpha);
}

constexpr OpRow kRows[] = {
    {"", "Einsum", Einsum},
    {"", "Gemm", GemmOp},
    {"", "MatMul", MatMul},
    {"", "MatMulInteger", MatMulInteger},
    {"", "QLinearMatMul", QLinearMatMul},
    {"com.microsoft", "FusedMatMul", FusedMatMul},
};

}  // namespace

OpTable MatMulOps() { return kRows; }

}  // namespace addnorm::runtime
