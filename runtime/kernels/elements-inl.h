// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Elements in vector registers, for one SIMD target: loads that widen,
// roundings, stores that narrow. The rules are those of element_types.h, bit
// for bit; a vector always has lanes of the type in which ops compute (float or
// double).
//
//   const hn::ScalableTag<float> d;
//   const auto sum = hn::Add(LoadElements(d, a), LoadElements(d, b));
//   StoreElements(d, CanonicalLanes(d, sum), out);  // a, b, out: Half*
#if defined(ADDNORM_RUNTIME_KERNELS_ELEMENTS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef ADDNORM_RUNTIME_KERNELS_ELEMENTS_INL_H_
#undef ADDNORM_RUNTIME_KERNELS_ELEMENTS_INL_H_
#else
#define ADDNORM_RUNTIME_KERNELS_ELEMENTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "runtime/element_types.h"

// x86 converts halves itself from AVX2 on, by the same rules. Others might, but
// have modes of their own for NaN and denormals: there it is integer
// arithmetic.
#undef ADDNORM_HAS_F16C
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define ADDNORM_HAS_F16C 1
#else
#define ADDNORM_HAS_F16C 0
#endif

HWY_BEFORE_NAMESPACE();
namespace addnorm::runtime::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The full vector in which ops on elements of T compute.
template <typename T>
using WideTag = hn::ScalableTag<ComputeType<T>>;

template <class D>
using BitsTag = hn::RebindToSigned<D>;
template <class D>
using Bits = hn::Vec<BitsTag<D>>;

// A NaN becomes the one that every op makes; see Canonical.
template <class D>
HWY_INLINE hn::Vec<D> CanonicalLanes(D d, hn::Vec<D> v) {
  using T = hn::TFromD<D>;
  const auto nan = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
  return hn::IfThenElse(hn::Eq(v, v), v, nan);
}

// a / b as IEEE has it, by zero too, for which Highway's emulation gives 0.
template <class V>
HWY_INLINE V Quotient(V a, V b) {
#if HWY_TARGET == HWY_EMU128
  using D = hn::DFromV<V>;
  using T = hn::TFromD<D>;
  constexpr size_t kLanes = 16 / sizeof(T);
  HWY_ALIGN T x[kLanes] = {};
  HWY_ALIGN T y[kLanes] = {};
  hn::Store(a, D(), x);
  hn::Store(b, D(), y);
  for (size_t i = 0; i < kLanes; ++i) x[i] /= y[i];
  return hn::Load(D(), x);
#else
  return hn::Div(a, b);
#endif
}

// ---- float from bits of halves, one in each 32-bit lane

template <class D>
HWY_INLINE hn::Vec<D> FloatsFromHalfBits(D d, Bits<D> half) {
  const BitsTag<D> di;
  const auto magnitude = hn::And(half, hn::Set(di, 0x7fff));
  const auto sign = hn::ShiftLeft<16>(hn::Xor(half, magnitude));
  const auto rebias = hn::Set(di, 112 << 23);
  auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), rebias);
  // Infinity and NaN: the exponent goes on to the largest there is.
  const auto is_special = hn::Gt(magnitude, hn::Set(di, 0x7bff));
  normal = hn::IfThenElse(is_special, hn::Add(normal, rebias), normal);
  const auto is_nan = hn::Gt(magnitude, hn::Set(di, 0x7c00));
  const auto quiet = hn::Or(normal, hn::Set(di, 0x400000));
  normal = hn::IfThenElse(is_nan, quiet, normal);
  // Denormal: magnitude * 2^-24, exact in float.
  const auto denormal =
      hn::Mul(hn::ConvertTo(d, magnitude), hn::Set(d, 0x1p-24f));
  const auto is_denormal = hn::Lt(magnitude, hn::Set(di, 0x400));
  const auto result =
      hn::IfThenElse(is_denormal, hn::BitCast(di, denormal), normal);
  return hn::BitCast(d, hn::Or(result, sign));
}

template <class D>
HWY_INLINE Bits<D> HalfBitsFromFloats(D d, hn::Vec<D> v) {
  const BitsTag<D> di;
  const auto bits = hn::BitCast(di, v);
  const auto magnitude = hn::And(bits, hn::Set(di, 0x7fffffff));
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(di, 0x8000));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(di, 1));
  const auto rounding = hn::Set(di, 0xfff - (112 << 23));
  const auto normal =
      hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, rounding), odd));
  // Denormal: the unit in the last place of 0.5f is that of a denormal half, so
  // the addition rounds to it.
  const auto half = hn::Set(d, 0.5f);
  const auto shifted = hn::Add(hn::BitCast(d, magnitude), half);
  const auto denormal =
      hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, half));
  auto result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x38800000)),
                               denormal, normal);
  result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x477ff000)), result,
                          hn::Set(di, 0x7c00));
  const auto payload =
      hn::And(hn::ShiftRight<13>(magnitude), hn::Set(di, 0x3ff));
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7f800000)),
                          hn::Or(payload, hn::Set(di, 0x7e00)), result);
  return hn::Or(result, sign);
}

// Of each 32-bit lane.
template <class D>
HWY_INLINE Bits<D> UpperHalves(D) {
  return hn::Set(BitsTag<D>(), static_cast<int32_t>(0xffff0000u));
}

// The float's bits with those below a BFloat16 to be cut off.
template <class D>
HWY_INLINE Bits<D> RoundedToBFloat16Bits(D, hn::Vec<D> v) {
  const BitsTag<D> di;
  const auto bits = hn::BitCast(di, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(di, 1));
  return hn::Add(hn::Add(bits, hn::Set(di, 0x7fff)), odd);
}

// ---- loads

template <class D>
HWY_INLINE hn::Vec<D> LoadElements(D d, const hn::TFromD<D>* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadElements(D d, const Half* from) {
  const hn::Rebind<uint16_t, D> du16;
  const auto bits = hn::LoadU(du16, &from->bits);
#if ADDNORM_HAS_F16C
  const hn::Rebind<hwy::float16_t, D> df16;
  return hn::PromoteTo(d, hn::BitCast(df16, bits));
#else
  return FloatsFromHalfBits(d, hn::PromoteTo(BitsTag<D>(), bits));
#endif
}
template <class D>
HWY_INLINE hn::Vec<D> LoadElements(D d, const BFloat16* from) {
  const hn::Rebind<uint16_t, D> du16;
  const auto bits = hn::PromoteTo(BitsTag<D>(), hn::LoadU(du16, &from->bits));
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}

// ---- stores with one rounding; for BFloat16 of lanes as RoundLanes needs them

template <class D>
HWY_INLINE void StoreElements(D d, hn::Vec<D> v, hn::TFromD<D>* to) {
  hn::StoreU(v, d, to);
}
template <class D>
HWY_INLINE void StoreElements(D d, hn::Vec<D> v, Half* to) {
  const hn::Rebind<uint16_t, D> du16;
#if ADDNORM_HAS_F16C
  const hn::Rebind<hwy::float16_t, D> df16;
  hn::StoreU(hn::BitCast(du16, hn::DemoteTo(df16, v)), du16, &to->bits);
#else
  const auto bits = HalfBitsFromFloats(d, v);
  hn::StoreU(hn::DemoteTo(du16, bits), du16, &to->bits);
#endif
}
template <class D>
HWY_INLINE void StoreElements(D d, hn::Vec<D> v, BFloat16* to) {
  const hn::Rebind<uint16_t, D> du16;
  const hn::RebindToUnsigned<D> du32;
  const auto bits = hn::BitCast(du32, RoundedToBFloat16Bits(d, v));
  // Below 2^16, so that the saturating conversion keeps all bits.
  const auto high = hn::BitCast(BitsTag<D>(), hn::ShiftRight<16>(bits));
  hn::StoreU(hn::DemoteTo(du16, high), du16, &to->bits);
}

// What StoreElements needs before, to keep a NaN of any payload as Narrow does.
// Only BFloat16's rounding could lose it.
template <typename T, class D>
HWY_INLINE hn::Vec<D> QuietForStore(D d, hn::Vec<D> v) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    const BitsTag<D> di;
    const auto bits = hn::BitCast(di, v);
    const auto cut =
        hn::And(hn::Or(bits, hn::Set(di, 0x400000)), UpperHalves(d));
    return hn::IfThenElse(hn::Eq(v, v), v, hn::BitCast(d, cut));
  } else {
    return v;
  }
}

// ---- rounding to T within a register; a NaN stays some NaN

// For BFloat16, a NaN must have no payload below its own. That is so for what
// is computed from BFloat16 elements and canonical numbers.
template <typename T, class D>
HWY_INLINE hn::Vec<D> RoundLanes(D d, hn::Vec<D> v) {
  if constexpr (std::is_same_v<T, Half>) {
#if ADDNORM_HAS_F16C
    const hn::Rebind<hwy::float16_t, D> df16;
    return hn::PromoteTo(d, hn::DemoteTo(df16, v));
#else
    return FloatsFromHalfBits(d, HalfBitsFromFloats(d, v));
#endif
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    const auto bits = RoundedToBFloat16Bits(d, v);
    return hn::BitCast(d, hn::And(bits, UpperHalves(d)));
  } else {
    return v;
  }
}

// ---- 2 * Lanes(d) BFloat16 elements as they are in memory: those of even
// index, and those of odd index. This needs no shuffles.

template <class D>
struct EvenOdd {
  hn::Vec<D> even, odd;
};

template <class D>
HWY_INLINE EvenOdd<D> LoadPairs(D d, const BFloat16* from) {
#if HWY_TARGET == HWY_SCALAR
  return {LoadElements(d, from), LoadElements(d, from + 1)};
#else
  const hn::Repartition<uint16_t, D> du16;
  const auto bits = hn::BitCast(BitsTag<D>(), hn::LoadU(du16, &from->bits));
  return {hn::BitCast(d, hn::ShiftLeft<16>(bits)),
          hn::BitCast(d, hn::And(bits, UpperHalves(d)))};
#endif
}

template <class D>
HWY_INLINE void StorePairs(D d, const EvenOdd<D>& v, BFloat16* to) {
#if HWY_TARGET == HWY_SCALAR
  StoreElements(d, v.even, to);
  StoreElements(d, v.odd, to + 1);
#else
  const hn::RebindToUnsigned<D> du32;
  const hn::Repartition<uint16_t, D> du16;
  const auto even = hn::BitCast(du32, RoundedToBFloat16Bits(d, v.even));
  const auto odd = hn::And(RoundedToBFloat16Bits(d, v.odd), UpperHalves(d));
  const auto both = hn::Or(hn::ShiftRight<16>(even), hn::BitCast(du32, odd));
  hn::StoreU(hn::BitCast(du16, both), du16, &to->bits);
#endif
}

}  // namespace addnorm::runtime::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ADDNORM_RUNTIME_KERNELS_ELEMENTS_INL_H_
