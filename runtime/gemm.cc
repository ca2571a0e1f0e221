// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/gemm.h"

#include "dnnl.h"

namespace addnorm::runtime {

absl::Status Gemm(const GemmShape& shape, const float* a, const float* b,
                  float* c, ThreadPool& /*threads*/) {
  const auto or_dense = [](int64_t stride, int64_t dense) {
    return stride == 0 ? dense : stride;
  };
  const dnnl_status_t status =
      dnnl_sgemm(shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N',
                 shape.m, shape.n, shape.k, 1.0F, a,
                 or_dense(shape.lda, shape.transpose_a ? shape.m : shape.k), b,
                 or_dense(shape.ldb, shape.transpose_b ? shape.k : shape.n),
                 0.0F, c, or_dense(shape.ldc, shape.n));
  if (status == dnnl_success) return absl::OkStatus();
  return absl::InternalError("oneDNN refuses a matrix product");
}

}  // namespace addnorm::runtime
