// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/memory_probes.h"

#include <cstring>

#include "runtime/kernels/highway_targets.h"
// After the above.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/memory_probes.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace addnorm::runtime::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
// Rows begin anywhere, so they are bytes.
using Tag = hn::ScalableTag<uint8_t>;

uint64_t Read(const void* from, size_t bytes) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  const auto* source = static_cast<const uint8_t*>(from);
  auto even = hn::Zero(d), odd = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= bytes; i += 2 * lanes) {
    even = hn::Xor(even, hn::LoadU(d, source + i));
    odd = hn::Xor(odd, hn::LoadU(d, source + i + lanes));
  }
  uint64_t rest = hn::GetLane(hn::Xor(even, odd));
  for (; i < bytes; ++i) rest ^= source[i];
  return rest;
}

void Copy(const void* from, void* to, size_t bytes) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  const auto* source = static_cast<const uint8_t*>(from);
  auto* target = static_cast<uint8_t*>(to);
  size_t i = 0;
  for (; i + 2 * lanes <= bytes; i += 2 * lanes) {
    const auto first = hn::LoadU(d, source + i);
    const auto second = hn::LoadU(d, source + i + lanes);
    hn::StoreU(first, d, target + i);
    hn::StoreU(second, d, target + i + lanes);
  }
  std::memcpy(target + i, source + i, bytes - i);
}

}  // namespace
}  // namespace addnorm::runtime::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace addnorm::runtime {

HWY_EXPORT(Read);
HWY_EXPORT(Copy);

uint64_t ReadRow(const void* from, size_t bytes) {
  return HWY_DYNAMIC_DISPATCH(Read)(from, bytes);
}

void CopyRow(const void* from, void* to, size_t bytes) {
  HWY_DYNAMIC_DISPATCH(Copy)(from, to, bytes);
}

}  // namespace addnorm::runtime
#endif  // HWY_ONCE
