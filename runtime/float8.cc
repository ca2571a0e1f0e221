// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/float8.h"

#include <algorithm>
#include <array>
#include <limits>

namespace addnorm::runtime {
namespace {

// A format of sign, exponent and mantissa. Codes are without the sign.
struct Format {
  ir::DataType type;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  int greatest;  // code of the greatest finite number
  int infinity;  // its code, -1 if there is none
  int nan;       // its code, -1 if there is none
  // The code of -0 is the only NaN, so that there is neither -0 nor -NaN.
  bool nan_is_minus_zero;

  int sign() const { return 1 << (exponent_bits + mantissa_bits); }
};

constexpr Format kFormats[] = {
    {ir::DataType::kFloat8E4M3FN, 4, 3, 7, 0x7e, -1, 0x7f, false},
    {ir::DataType::kFloat8E4M3FNUZ, 4, 3, 8, 0x7f, -1, 0x80, true},
    {ir::DataType::kFloat8E5M2, 5, 2, 15, 0x7b, 0x7c, 0x7e, false},
    {ir::DataType::kFloat8E5M2FNUZ, 5, 2, 16, 0x7f, -1, 0x80, true},
    {ir::DataType::kFloat4E2M1, 2, 1, 1, 0x7, -1, -1, false},
};

const Format* Find(ir::DataType type) {
  for (const Format& format : kFormats) {
    if (format.type == type) return &format;
  }
  return nullptr;
}

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Float8E8M0: code c is 2^(c - 127), and 255 is NaN.
constexpr int kPowerBias = 127;
constexpr uint8_t kPowerNaN = 255;
constexpr int kGreatestPower = 254;

float FloatFromPower(uint8_t code) {
  return code == kPowerNaN ? kNaN : std::ldexp(1.0f, code - kPowerBias);
}

uint8_t PowerFromFloat(float value, const SmallFloatOptions& options) {
  if (value != value) return kPowerNaN;
  const uint8_t above = options.saturate ? kGreatestPower : kPowerNaN;
  const uint8_t below = options.saturate ? 0 : kPowerNaN;
  if (std::isinf(value)) return above;
  if (value == 0) return below;
  int exponent = 0;
  // In [1, 2): frexp gives a half of that.
  const float fraction = 2 * std::frexp(std::abs(value), &exponent);
  const bool up = options.power_rounding == PowerRounding::kUp ? fraction > 1
                  : options.power_rounding == PowerRounding::kNearest
                      ? fraction >= 1.5f
                      : false;
  const int code = exponent - 1 + (up ? 1 : 0) + kPowerBias;
  if (code > kGreatestPower) return above;
  return code < 0 ? below : static_cast<uint8_t>(code);
}

float FloatFromFormat(const Format& format, int code) {
  const int magnitude = code & (format.sign() - 1);
  const bool negative = (code & format.sign()) != 0;
  if (format.nan_is_minus_zero && negative && magnitude == 0) return kNaN;
  const float sign = negative ? -1.0f : 1.0f;
  if (magnitude == format.infinity)
    return sign * std::numeric_limits<float>::infinity();
  if (magnitude > format.greatest) return std::copysign(kNaN, sign);
  const int exponent = magnitude >> format.mantissa_bits;
  const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
  const int hidden = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  return sign *
         std::ldexp(static_cast<float>(hidden + mantissa),
                    std::max(exponent, 1) - format.bias - format.mantissa_bits);
}

// What stands for a magnitude beyond the greatest finite one.
int Overflow(const Format& format, bool saturate) {
  if (saturate || format.nan < 0) return format.greatest;
  return format.infinity >= 0 ? format.infinity : format.nan;
}

uint8_t FormatFromFloat(const Format& format, float value, bool saturate) {
  const int sign = std::signbit(value) ? format.sign() : 0;
  if (value != value && format.nan < 0)
    return static_cast<uint8_t>(format.sign());
  if (value != value) return static_cast<uint8_t>(format.nan | sign);
  if (std::isinf(value))
    return static_cast<uint8_t>(Overflow(format, saturate) | sign);
  // The magnitude in units of its last place: with the hidden bit, or without
  // for denormals. A carry into the next exponent comes out right by itself.
  const double magnitude = std::abs(static_cast<double>(value));
  const int exponent =
      std::max(magnitude == 0 ? -200 : std::ilogb(magnitude), 1 - format.bias);
  const double units =
      std::nearbyint(std::scalbn(magnitude, format.mantissa_bits - exponent));
  const int64_t code = (static_cast<int64_t>(exponent + format.bias - 1)
                        << format.mantissa_bits) +
                       static_cast<int64_t>(units);
  if (code > format.greatest)
    return static_cast<uint8_t>(Overflow(format, saturate) | sign);
  if (code == 0 && format.nan_is_minus_zero) return 0;
  return static_cast<uint8_t>(static_cast<int>(code) | sign);
}

}  // namespace

bool IsSmallFloat(ir::DataType type) {
  return type == ir::DataType::kFloat8E8M0 || Find(type) != nullptr;
}

float FloatFromSmall(ir::DataType type, uint8_t code) {
  const Format* format = Find(type);
  return format == nullptr ? FloatFromPower(code)
                           : FloatFromFormat(*format, code);
}

uint8_t SmallFromFloat(ir::DataType type, float value,
                       const SmallFloatOptions& options) {
  const Format* format = Find(type);
  return format == nullptr ? PowerFromFloat(value, options)
                           : FormatFromFloat(*format, value, options.saturate);
}

}  // namespace addnorm::runtime
