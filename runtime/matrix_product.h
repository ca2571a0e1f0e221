// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// y = alpha * a · b + beta * c for elements of any type that MatMul allows.
//
// Sums are in the type in which the elements compute, in an order that does not
// depend on the number of threads; results are rounded once. Half types are
// widened block by block, never a whole operand. Batches and broadcasting are
// the operators' (ops/mat_mul.cc).
//
//   RETURN_IF_ERROR(MatrixProduct<Half>({.m = 2, .n = 8, .k = 4}, a, b, y, {},
//                                       threads));
#ifndef ADDNORM_RUNTIME_MATRIX_PRODUCT_H_
#define ADDNORM_RUNTIME_MATRIX_PRODUCT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/element_types.h"
#include "runtime/gemm.h"
#include "runtime/thread_pool.h"

namespace addnorm::runtime {

// What becomes of the product at [i,j]. c's distances are 0 where it is
// broadcast.
template <typename T>
struct ProductTerms {
  ComputeType<T> alpha{1};
  ComputeType<T> beta{1};
  const T* c = nullptr;  // none
  int64_t c_row = 0, c_column = 0;

  bool is_plain() const { return c == nullptr && alpha == ComputeType<T>{1}; }
};

// T is float, double, Half, BFloat16 or an integer of 32 or 64 bits.
template <typename T>
absl::Status MatrixProduct(const GemmShape& shape, const T* a, const T* b, T* y,
                           const ProductTerms<T>& terms, ThreadPool& threads);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_MATRIX_PRODUCT_H_
