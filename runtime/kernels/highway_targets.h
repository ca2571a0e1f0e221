// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Which SIMD targets the kernels are compiled for. Each kernel's .cc includes
// it before Highway; nothing else does.
//
// All that the compiler can make, the scalar one included, so that verify can
// compare them with each other. Not those whose vectors have no length until
// the program runs: the 32 lanes of a sum (row_ops.h) are arrays of vectors.
#ifndef ADDNORM_RUNTIME_KERNELS_HIGHWAY_TARGETS_H_
#define ADDNORM_RUNTIME_KERNELS_HIGHWAY_TARGETS_H_

#define HWY_COMPILE_ALL_ATTAINABLE
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#endif  // ADDNORM_RUNTIME_KERNELS_HIGHWAY_TARGETS_H_
