// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// e^x of each lane of a vector of floats, for one SIMD target: the steps of
// runtime/exponential.h, which says why they are as they are, one by one. So
// the bits are the same; a change of one is a change of both.
//
//   const auto power = ExponentialLanes(d, hn::Sub(v, maximum));
#if defined(ADDNORM_RUNTIME_KERNELS_EXPONENTIAL_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ADDNORM_RUNTIME_KERNELS_EXPONENTIAL_INL_H_
#undef ADDNORM_RUNTIME_KERNELS_EXPONENTIAL_INL_H_
#else
#define ADDNORM_RUNTIME_KERNELS_EXPONENTIAL_INL_H_
#endif

#include <bit>

#include "hwy/highway.h"
#include "runtime/kernels/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace addnorm::runtime::HWY_NAMESPACE {

// x with a magnitude of at most 130; a NaN stays.
template <class D>
HWY_INLINE hn::Vec<D> BoundedExponent(D d, hn::Vec<D> x) {
  const BitsTag<D> di;
  const auto largest = hn::Set(di, std::bit_cast<int32_t>(130.0F));
  const auto infinite = hn::Set(di, 0x7f800000);
  const auto bits = hn::BitCast(di, x);
  const auto magnitude = hn::And(bits, hn::Set(di, 0x7fffffff));
  const auto is_beyond =
      hn::AndNot(hn::Gt(magnitude, infinite), hn::Gt(magnitude, largest));
  const auto bounded = hn::IfThenElse(is_beyond, largest, magnitude);
  return hn::BitCast(d, hn::Or(bounded, hn::Xor(bits, magnitude)));
}

template <class D>
HWY_INLINE hn::Vec<D> ExponentialLanes(D d, hn::Vec<D> x) {
  const BitsTag<D> di;
  const auto shift = hn::Set(d, 0x1.8p23F);
  x = BoundedExponent(d, x);
  const auto shifted = hn::Add(hn::Mul(x, hn::Set(d, 0x1.715476p0F)), shift);
  const auto n = hn::Sub(shifted, shift);
  auto r = hn::Sub(x, hn::Mul(n, hn::Set(d, 0x1.62e4p-1F)));
  r = hn::Sub(r, hn::Mul(n, hn::Set(d, 0x1.7f7d1cp-20F)));
  auto series = hn::Set(d, 1.0F / 5040);
  for (const float term :
       {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F})
    series = hn::Add(hn::Mul(series, r), hn::Set(d, term));
  const auto exponent =
      hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, shift));
  const auto half = hn::ShiftRight<1>(exponent);
  const auto power_of_two = [&](Bits<D> e) HWY_ATTR {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(e, hn::Set(di, 127))));
  };
  return hn::Mul(hn::Mul(series, power_of_two(half)),
                 power_of_two(hn::Sub(exponent, half)));
}

}  // namespace addnorm::runtime::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ADDNORM_RUNTIME_KERNELS_EXPONENTIAL_INL_H_
