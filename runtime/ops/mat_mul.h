// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices with batches, broadcast as numpy.matmul does, for MatMul
// and its quantised relatives; and the operators that mat_mul.cc lists in its
// table and other files implement.
//
//   ASSIGN_OR_RETURN(const BatchedProduct product,
//                    MakeBatchedProduct(a, b, {}));
//   ASSIGN_OR_RETURN(Tensor* y, op.Output(0, a.type(), product.dims));
#ifndef ADDNORM_RUNTIME_OPS_MAT_MUL_H_
#define ADDNORM_RUNTIME_OPS_MAT_MUL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gemm.h"
#include "runtime/matrix_product.h"
#include "runtime/op.h"
#include "runtime/tensor.h"

namespace addnorm::runtime {

// How an operand is read. A transposed batch has its rows in axis 0 and its
// batches in the axes between that and the last.
struct MatrixLayout {
  bool transpose = false, transpose_batch = false;
};

struct BatchedProduct {
  GemmShape shape;  // of each product
  Dims dims;        // of the result
  // Where each product's operands begin.
  std::vector<int64_t> a_offsets, b_offsets;
};

absl::StatusOr<BatchedProduct> MakeBatchedProduct(const Tensor& a,
                                                  const Tensor& b,
                                                  MatrixLayout a_layout = {},
                                                  MatrixLayout b_layout = {});

// y = alpha * a · b for each batch. T as in matrix_product.h.
template <typename T>
absl::Status RunBatchedProduct(const BatchedProduct& product, const T* a,
                               const T* b, T* y, ComputeType<T> alpha,
                               ThreadPool& threads);

// einsum.cc
absl::Status Einsum(OpContext& op);

// gemm_op.cc
absl::Status GemmOp(OpContext& op);

// quantized_mat_mul.cc
absl::Status MatMulInteger(OpContext& op);
absl::Status QLinearMatMul(OpContext& op);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_MAT_MUL_H_
