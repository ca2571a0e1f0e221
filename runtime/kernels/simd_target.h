// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The SIMD targets that the kernels have on this machine, and a way to use
// another one than the best. For tests and verify: every target gives the same
// bits.
//
//   for (const SimdTarget& target : SimdTargets()) {
//     const UseSimdTarget use(target);  // of the whole process
//     …
//   }
#ifndef ADDNORM_RUNTIME_KERNELS_SIMD_TARGET_H_
#define ADDNORM_RUNTIME_KERNELS_SIMD_TARGET_H_

#include <cstdint>
#include <string>
#include <vector>

namespace addnorm::runtime {

struct SimdTarget {
  std::string name;  // Highway's: "AVX3", "SSE4", "SCALAR", …
  int64_t mask = 0;
};

// Best first, the scalar one last.
std::vector<SimdTarget> SimdTargets();

// No kernel may run on another thread while it is made or destroyed.
class UseSimdTarget {
 public:
  explicit UseSimdTarget(const SimdTarget& target);
  ~UseSimdTarget();
  UseSimdTarget(const UseSimdTarget&) = delete;
  UseSimdTarget& operator=(const UseSimdTarget&) = delete;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_SIMD_TARGET_H_
