// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A whole operand as floats, for ops that compute with matrices of floats.
//
// Not for element-wise ops, which widen blocks of a row (elementwise.h).
//
//   ASSIGN_OR_RETURN(const Tensor a, Widened<T>(op, op.input(0)));
#ifndef ADDNORM_RUNTIME_OPS_WIDENED_H_
#define ADDNORM_RUNTIME_OPS_WIDENED_H_

#include <type_traits>

#include "passes/ir/status_macros.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/op.h"

namespace addnorm::runtime {

// T: float, in which case it is the operand itself, Half or BFloat16.
template <typename T>
absl::StatusOr<Tensor> Widened(OpContext& op, const Tensor& tensor) {
  if constexpr (std::is_same_v<T, float>) {
    return tensor;
  } else {
    ASSIGN_OR_RETURN(Tensor wide,
                     op.Scratch(ir::DataType::kFloat, tensor.dims()));
    WidenRow(tensor.data<T>(), wide.mutable_data<float>(),
             static_cast<size_t>(tensor.count()));
    return wide;
  }
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_WIDENED_H_
