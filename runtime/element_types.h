// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// C++ types of tensor elements that C++ does not have, and the table that ties
// each C++ type to its ONNX number.
//
// Half types are storage only: an op widens them, computes in float, and rounds
// once to nearest even (Widen, Narrow). The conversions are integer rules, the
// same on every machine. A NaN keeps its sign and the top bits of its payload
// and becomes quiet, as x86's own conversion does.
//
//   BFloat16 sum = Narrow<BFloat16>(Widen(a) + Widen(b));
#ifndef ADDNORM_RUNTIME_ELEMENT_TYPES_H_
#define ADDNORM_RUNTIME_ELEMENT_TYPES_H_

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "passes/ir/type.h"

namespace addnorm::runtime {

// The element's bits, of a type of its own for each ONNX number. Types of less
// than a byte take a byte here: sign-extended integers, or the low bits.
template <typename Bits, ir::DataType kType>
struct Stored {
  Bits bits = 0;
  friend bool operator==(const Stored&, const Stored&) = default;
};

using Half = Stored<uint16_t, ir::DataType::kFloat16>;
using BFloat16 = Stored<uint16_t, ir::DataType::kBFloat16>;
using Float8E4M3FN = Stored<uint8_t, ir::DataType::kFloat8E4M3FN>;
using Float8E4M3FNUZ = Stored<uint8_t, ir::DataType::kFloat8E4M3FNUZ>;
using Float8E5M2 = Stored<uint8_t, ir::DataType::kFloat8E5M2>;
using Float8E5M2FNUZ = Stored<uint8_t, ir::DataType::kFloat8E5M2FNUZ>;
using Float8E8M0 = Stored<uint8_t, ir::DataType::kFloat8E8M0>;
using Float4E2M1 = Stored<uint8_t, ir::DataType::kFloat4E2M1>;
using Int4 = Stored<int8_t, ir::DataType::kInt4>;
using Uint4 = Stored<uint8_t, ir::DataType::kUint4>;
using Int2 = Stored<int8_t, ir::DataType::kInt2>;
using Uint2 = Stored<uint8_t, ir::DataType::kUint2>;

template <typename T>
inline constexpr ir::DataType kTypeOf = ir::DataType::kUndefined;
template <typename Bits, ir::DataType kType>
inline constexpr ir::DataType kTypeOf<Stored<Bits, kType>> = kType;
template <>
inline constexpr ir::DataType kTypeOf<float> = ir::DataType::kFloat;
template <>
inline constexpr ir::DataType kTypeOf<double> = ir::DataType::kDouble;
template <>
inline constexpr ir::DataType kTypeOf<int8_t> = ir::DataType::kInt8;
template <>
inline constexpr ir::DataType kTypeOf<uint8_t> = ir::DataType::kUint8;
template <>
inline constexpr ir::DataType kTypeOf<int16_t> = ir::DataType::kInt16;
template <>
inline constexpr ir::DataType kTypeOf<uint16_t> = ir::DataType::kUint16;
template <>
inline constexpr ir::DataType kTypeOf<int32_t> = ir::DataType::kInt32;
template <>
inline constexpr ir::DataType kTypeOf<uint32_t> = ir::DataType::kUint32;
template <>
inline constexpr ir::DataType kTypeOf<int64_t> = ir::DataType::kInt64;
template <>
inline constexpr ir::DataType kTypeOf<uint64_t> = ir::DataType::kUint64;
template <>
inline constexpr ir::DataType kTypeOf<bool> = ir::DataType::kBool;

inline float FloatFromHalf(Half value) {
  const uint32_t sign = (value.bits & 0x8000u) << 16;
  const uint32_t magnitude = value.bits & 0x7fffu;
  if (magnitude > 0x7c00u)  // NaN
    return std::bit_cast<float>(sign | 0x7fc00000u |
                                (magnitude & 0x3ffu) << 13);
  if (magnitude == 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u);
  if (magnitude >= 0x400u)  // normal: another exponent bias
    return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  // Denormal: magnitude * 2^-24, exact in float.
  const float result = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(result));
}

inline Half HalfFromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const auto signed_half = [sign](uint32_t half) {
    return Half{static_cast<uint16_t>(sign | half)};
  };
  if (magnitude > 0x7f800000u)  // NaN
    return signed_half(0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x477ff000u) return signed_half(0x7c00u);  // from 65520 on
  if (magnitude >= 0x38800000u) {  // normal: round, then another exponent bias
    const uint32_t odd = magnitude >> 13 & 1u;
    return signed_half((magnitude + 0xfffu + odd - (112u << 23)) >> 13);
  }
  // Denormal: shift the mantissa, with its hidden one, to units of 2^-24.
  const uint32_t exponent = magnitude >> 23;
  if (exponent < 102u) return signed_half(0);  // less than half a unit
  const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t shift = 126u - exponent;
  const uint32_t half = 1u << (shift - 1);
  const uint32_t odd = mantissa >> shift & 1u;
  return signed_half((mantissa + half - 1u + odd) >> shift);
}

inline float FloatFromBFloat16(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

inline BFloat16 BFloat16FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)  // NaN: rounding could lose it
    return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
  const uint32_t odd = bits >> 16 & 1u;
  return {static_cast<uint16_t>((bits + 0x7fffu + odd) >> 16)};
}

template <typename T>
inline constexpr bool kIsHalfType =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// The type in which an op computes on elements of T.
template <typename T>
using ComputeType = std::conditional_t<kIsHalfType<T>, float, T>;

template <typename T>
ComputeType<T> Widen(T value) {
  if constexpr (std::is_same_v<T, Half>) {
    return FloatFromHalf(value);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return FloatFromBFloat16(value);
  } else {
    return value;
  }
}

template <typename T>
T Narrow(ComputeType<T> value) {
  if constexpr (std::is_same_v<T, Half>) {
    return HalfFromFloat(value);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return BFloat16FromFloat(value);
  } else {
    return value;
  }
}

// A NaN as every op of this runtime makes it: quiet, positive, no payload.
// Which operand's payload survives differs between machines, and compilers may
// swap operands, so without this equal graphs would give unequal bits.
template <typename T>
T Canonical(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return value == value ? value : std::numeric_limits<T>::quiet_NaN();
  } else {
    return value;
  }
}

// The result of an op on elements of T: one rounding, and a canonical NaN.
template <typename T>
T Rounded(ComputeType<T> value) {
  return Narrow<T>(Canonical(value));
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_ELEMENT_TYPES_H_
