// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of floats, by oneDNN. Results do not depend on the number of
// threads: the result is cut into blocks of fixed size, each of which oneDNN
// computes on one thread (by itself it cuts where the threads' number says, and
// with it the sums). The only file that knows oneDNN is gemm.cc.
//
// For other types, and y = alpha * a · b + beta * c, see matrix_product.h.
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

  // Distances of neighbours in the operands.
  int64_t row_of_a() const { return transpose_a ? 1 : lda != 0 ? lda : k; }
  int64_t column_of_a() const { return !transpose_a ? 1 : lda != 0 ? lda : m; }
  int64_t row_of_b() const { return transpose_b ? 1 : ldb != 0 ? ldb : n; }
  int64_t column_of_b() const { return !transpose_b ? 1 : ldb != 0 ? ldb : k; }
  int64_t row_of_c() const { return ldc != 0 ? ldc : n; }
};

// The parts that threads take. Smaller ones cost speed, larger ones leave
// threads without work.
inline constexpr int64_t kGemmBlockRows = 256;
inline constexpr int64_t kGemmBlockColumns = 256;

// c = a · b; with k = 0, zeros. A NaN is canonical. kInternal if oneDNN
// refuses.
absl::Status Gemm(const GemmShape& shape, const float* a, const float* b,
                  float* c, ThreadPool& threads);

// One block of a product on the calling thread: c = a · b, or c += a · b.
absl::Status GemmBlock(const GemmShape& shape, const float* a, const float* b,
                       float* c, bool accumulate);

// Makes oneDNN generate its code, which takes up to a second, so that whoever
// measures does not count it to the first product.
void PrepareGemm(ThreadPool& threads);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_GEMM_H_
