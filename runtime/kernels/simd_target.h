// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The SIMD targets that the kernels have on this machine, and a way to use
// another one than the best. For --simd, tests and verify: every target gives
// the same bits. Matrix products of floats are oneDNN's, which chooses by
// itself.
//
//   for (const SimdTarget& target : SimdTargets()) {
//     const UseSimdTarget use(target);  // of the whole process
//     …
//   }
#ifndef ADDNORM_RUNTIME_KERNELS_SIMD_TARGET_H_
#define ADDNORM_RUNTIME_KERNELS_SIMD_TARGET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace addnorm::runtime {

struct SimdTarget {
  std::string name;  // Highway's: "AVX3", "SSE4", "SCALAR", …
  int64_t mask = 0;
};

// Best first, the scalar one last; only the one that is in use while it was
// chosen by one of the below.
std::vector<SimdTarget> SimdTargets();

// For the rest of the process, before any kernel runs. The name is that of one
// of SimdTargets().
void ChooseSimdTarget(std::string_view name);

// No kernel may run on another thread while it is made or destroyed.
class UseSimdTarget {
 public:
  explicit UseSimdTarget(const SimdTarget& target);
  ~UseSimdTarget();
  UseSimdTarget(const UseSimdTarget&) = delete;
  UseSimdTarget& operator=(const UseSimdTarget&) = delete;

 private:
  const int64_t before_;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_SIMD_TARGET_H_
