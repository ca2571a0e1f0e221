// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The two loops of a fused norm, for the recipes that have loops of their own.
// The parts of add_rms_norm.cc; not for others.
//
//   if (const FirstPass pass = FirstPassFor(type, square_type))
//     sum = pass(a, b, x, n);
#ifndef ADDNORM_RUNTIME_KERNELS_ROW_PASSES_H_
#define ADDNORM_RUNTIME_KERNELS_ROW_PASSES_H_

#include <cstddef>
#include <cstdint>

#include "passes/ir/type.h"

namespace addnorm::runtime {

// x = a + b; gives the sum of the squares of x. Where b is nullptr, x is a, and
// nothing is written. All rows are of `type`; squares are rounded to
// `square_type`, and the sum to its ComputeType.
using FirstPass = double (*)(const void* a, const void* b, void* x, size_t n);

// nullptr where there is no such loop.
FirstPass FirstPassFor(ir::DataType type, ir::DataType square_type);

// y from x and the row's factor; round is to `middle`, and the result is
// rounded to `result`.
enum class RowForm : uint8_t {
  kFactor,        // x * factor
  kOver,          // x / factor
  kFactorScale,   // round(x * factor) * scale
  kOverScale,     // round(x / factor) * scale
  kScaleFactor,   // round(x * scale) * factor
  kScaledFactor,  // x * round(factor * scale)
};

struct SecondPassKey {
  RowForm form = RowForm::kFactor;
  ir::DataType type = ir::DataType::kUndefined;
  ir::DataType middle = ir::DataType::kUndefined;
  ir::DataType result = ir::DataType::kUndefined;
  ir::DataType scale = ir::DataType::kUndefined;  // of the forms that have one
};

using SecondPass = void (*)(const void* x, const void* scale, double factor,
                            void* y, size_t n);

SecondPass SecondPassFor(const SecondPassKey& key);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_ROW_PASSES_H_
