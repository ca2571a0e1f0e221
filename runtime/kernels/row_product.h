// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// One row times a matrix, at the speed at which the matrix is read: what a
// decoder does for each token. T is float, Half or BFloat16; products and sums
// are float, each rounded, in an order that no SIMD width changes.
//
// For more rows than one a real matrix product is faster (gemm.h). It knows no
// threads: callers share out the columns.
//
//   RowTimesMatrix(a, b, k, n, n, c);  // c[0,n) = a[0,k) · b[k,n]
#ifndef ADDNORM_RUNTIME_KERNELS_ROW_PRODUCT_H_
#define ADDNORM_RUNTIME_KERNELS_ROW_PRODUCT_H_

#include <cstdint>

#include "runtime/element_types.h"

namespace addnorm::runtime {

// c[j] = sum over p of a[p] * b[p * ldb + j], for j < width. Eight products at
// a time are added pairwise, and their sum to c; the last k mod 8 one by one.
template <typename T>
void RowTimesMatrix(const float* a, const T* b, int64_t k, int64_t ldb,
                    int64_t width, float* c);

// c[j] = sum over p of a[p] * b[j * ldb + p], for j < rows, as row_sum.h sums.
template <typename T>
void RowTimesTransposed(const float* a, const T* b, int64_t k, int64_t ldb,
                        int64_t rows, float* c);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_ROW_PRODUCT_H_
