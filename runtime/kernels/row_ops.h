// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on rows of elements: the primitives of which ops and fused kernels
// are made, in whatever SIMD instructions the machine has.
//
// The contract, which holds for every machine and target:
// - Each op rounds once to the type T of its result. Half types compute in
//   float in between. A NaN that an op makes is Canonical.
// - A sum over a row has 32 lanes: element i is added to lane i mod 32, in
//   order of i; then lane k += lane k + h for h = 16, 8, 4, 2, 1. Nothing is
//   fused: x * x is rounded before it is added. A row must not be split.
// - Rows need no alignment. A result may overwrite an operand whose elements
//   have the same size, from the same address on.
//
// T is float, double, Half or BFloat16 throughout. It knows no threads, shapes
// or broadcasting.
//
//   BinaryRows(BinaryOp::kAdd, a, b, sum, n);
//   const float mean = SumRow(sum, n) / static_cast<float>(n);
#ifndef ADDNORM_RUNTIME_KERNELS_ROW_OPS_H_
#define ADDNORM_RUNTIME_KERNELS_ROW_OPS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/element_types.h"

namespace addnorm::runtime {

enum class BinaryOp : uint8_t { kAdd, kSubtract, kMultiply, kDivide };
enum class UnaryOp : uint8_t {
  kSquareRoot,
  kReciprocal,
  kNegate,
  kSquare,
  kExponential,  // as exponential.h has it
};

// out[i] = a[i] op b[i]
template <typename T>
void BinaryRows(BinaryOp op, const T* a, const T* b, T* out, size_t n);
// out[i] = a[i] op b
template <typename T>
void BinaryRowScalar(BinaryOp op, const T* a, T b, T* out, size_t n);
// out[i] = a op b[i]
template <typename T>
void BinaryScalarRow(BinaryOp op, T a, const T* b, T* out, size_t n);

// out[i] = op(a[i])
template <typename T>
void UnaryRow(UnaryOp op, const T* a, T* out, size_t n);

// Not rounded to a half type yet: that is the caller's, after a mean's division
// for instance. Nor is the square in SumOfSquaresRow.
template <typename T>
ComputeType<T> SumRow(const T* a, size_t n);
template <typename T>
ComputeType<T> SumOfSquaresRow(const T* a, size_t n);

// The greatest element; -Inf of none, and a NaN if there is one. It takes the
// lanes of a sum, which decides between zeros of both signs: a later one must
// be greater.
template <typename T>
ComputeType<T> MaxRow(const T* a, size_t n);

// Widen and Narrow of each element; the payload of a NaN stays, as in Cast.
void WidenRow(const Half* a, float* out, size_t n);
void WidenRow(const BFloat16* a, float* out, size_t n);
void NarrowRow(const float* a, Half* out, size_t n);
void NarrowRow(const float* a, BFloat16* out, size_t n);

// Rounded of each element: results of an op, which have no other NaN.
void RoundRow(const float* a, Half* out, size_t n);
void RoundRow(const float* a, BFloat16* out, size_t n);

// The same for elements of types that ops compute in, so that templates need
// not tell half types apart.
template <typename T>
void WidenRow(const T* a, T* out, size_t n) {
  std::copy_n(a, n, out);
}
template <typename T>
void NarrowRow(const T* a, T* out, size_t n) {
  std::copy_n(a, n, out);
}
template <typename T>
void RoundRow(const T* a, T* out, size_t n) {
  std::transform(a, a + n, out, [](T v) { return Canonical(v); });
}

// Copies past the caches, for results that would not fit in them. The writes
// are in order with later ones only after FlushStreams().
void StreamRow(const void* from, void* to, size_t bytes);
void FlushStreams();

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_ROW_OPS_H_
