// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Any recipe on one row, step after step with the primitives of row_ops.h, in
// buffers that stay in the first-level cache. What add_rms_norm.cc does where
// row_passes.h has no loop; not for others.
//
//   StepwiseNorm norm(recipe, length);
//   const double sum = norm.SumOfSquares(x);
//   norm.Normalise(x, scale, factor, y);
#ifndef ADDNORM_RUNTIME_KERNELS_STEPWISE_NORM_H_
#define ADDNORM_RUNTIME_KERNELS_STEPWISE_NORM_H_

#include <cstddef>
#include <memory>

#include "passes/ir/type.h"
#include "runtime/recipe.h"

namespace addnorm::runtime {

class StepwiseNorm {
 public:
  // The recipe must outlive it.
  StepwiseNorm(const RmsNormRecipe& recipe, size_t length);

  // x = a + b, rounded.
  void Add(const void* a, const void* b, void* x) const;
  // Not yet rounded to a half type; see RowFactor.
  double SumOfSquares(const void* x);
  // scale: a row of the last of the recipe's scale_types. y may be x.
  void Normalise(const void* x, const void* scale, double factor, void* y);

 private:
  void Cast(ir::DataType& type, ir::DataType to);
  void Apply(const RowStep& step, ir::DataType type, const void* scale,
             double factor);

  const RmsNormRecipe& recipe_;
  size_t length_;
  std::unique_ptr<std::byte[]> row_, other_;  // up to 8 bytes an element
};

// A row as another type, each element by CastElement.
void CastRow(ir::DataType from_type, const void* from, ir::DataType to_type,
             void* to, size_t length);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_STEPWISE_NORM_H_
