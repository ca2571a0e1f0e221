// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of floats, by oneDNN: its results do not depend on the number
// of threads. The only file that knows oneDNN is gemm.cc.
//
//   // c[m,n] = a[m,k] · b[k,n]
//   RETURN_IF_ERROR(Gemm({.m = 2, .n = 8, .k = 4}, a, b, c, threads));
#ifndef ADDNORM_RUNTIME_GEMM_H_
#define ADDNORM_RUNTIME_GEMM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/thread_pool.h"

namespace addnorm::runtime {

// Row-major operands. Leading dimensions are distances between stored rows in
// elements; 0 stands for dense. A transposed operand is stored as [k,m] or
// [n,k].
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t lda = 0, ldb = 0, ldc = 0;
};

// c = a · b; with k = 0, zeros. kInternal if oneDNN refuses.
absl::Status Gemm(const GemmShape& shape, const float* a, const float* b,
                  float* c, ThreadPool& threads);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_GEMM_H_
