// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/simd_target.h"

#include "passes/ir/check.h"
#include "runtime/kernels/highway_targets.h"
// After the above.
#include "hwy/highway.h"

namespace addnorm::runtime {

std::vector<SimdTarget> SimdTargets() {
  std::vector<SimdTarget> targets;
  // Better targets have lower bits.
  int64_t masks = hwy::SupportedTargets() & HWY_TARGETS;
  for (; masks != 0; masks &= masks - 1) {
    const int64_t mask = masks & -masks;
    targets.push_back({hwy::TargetName(mask), mask});
  }
  return targets;
}

void ChooseSimdTarget(std::string_view name) {
  for (const SimdTarget& target : SimdTargets()) {
    if (target.name == name)
      return hwy::SetSupportedTargetsForTest(target.mask);
  }
  ADDNORM_CHECK(false, "not a name of SimdTargets()");
}

UseSimdTarget::UseSimdTarget(const SimdTarget& target)
    : before_(hwy::SupportedTargets()) {
  hwy::SetSupportedTargetsForTest(target.mask);
}

UseSimdTarget::~UseSimdTarget() { hwy::SetSupportedTargetsForTest(before_); }

}  // namespace addnorm::runtime
