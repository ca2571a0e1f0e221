// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Additions and multiplications in registers and nothing else: how fast a
// kernel could compute if no memory held it up. Not fused into one operation,
// as in the kernels, where each rounds by itself.
//
//   const double operations = MultiplyAndAdd(/*is_double=*/false, 100'000);
#ifndef ADDNORM_RUNTIME_KERNELS_ARITHMETIC_PROBE_H_
#define ADDNORM_RUNTIME_KERNELS_ARITHMETIC_PROBE_H_

#include <cstdint>

namespace addnorm::runtime {

// So many rounds of independent chains; how many operations that was, on
// elements and not on vectors.
double MultiplyAndAdd(bool is_double, int64_t rounds);

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_ARITHMETIC_PROBE_H_
