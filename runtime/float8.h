// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Floats of a byte or less: their values, and the nearest of them to a float.
//
// Storage types only; nothing computes in them. They differ in widths, in bias
// and in what they have for infinity and NaN, which is a table in float8.cc.
//
//   SmallFromFloat(ir::DataType::kFloat8E4M3FN, 1000, {});   // 0x7e: 448
#ifndef ADDNORM_RUNTIME_FLOAT8_H_
#define ADDNORM_RUNTIME_FLOAT8_H_

#include <bit>
#include <cmath>
#include <cstdint>

#include "passes/ir/type.h"

namespace addnorm::runtime {

// How Float8E8M0, which has powers of two only, is rounded to. kNearest takes
// the greater of two that are as near.
enum class PowerRounding { kUp, kDown, kNearest };

struct SmallFloatOptions {
  // What is too great becomes the greatest finite number; without it infinity,
  // or NaN where the type has none. Float4E2M1 always saturates.
  bool saturate = true;
  PowerRounding power_rounding = PowerRounding::kUp;
};

// One of the float8 types or Float4E2M1.
bool IsSmallFloat(ir::DataType type);

// Exact. `code` may have bits beyond the type's, which are ignored.
float FloatFromSmall(ir::DataType type, uint8_t code);

// Rounded to nearest even (but Float8E8M0: as the options say). A NaN stays one
// with its sign, if the type has it; Float4E2M1 has none and gets -0, as
// ONNX's own data has it. Float8E8M0 has no sign and takes the magnitude.
uint8_t SmallFromFloat(ir::DataType type, float value,
                       const SmallFloatOptions& options);

// The double cut to a float whose last bit is set if something was cut off.
// Rounding that to a type of at most 22 bits gives what rounding the double
// itself would give: once, not twice.
inline float OddFromDouble(double value) {
  const float nearest = static_cast<float>(value);
  // Exact (or NaN), and infinity of infinity.
  if (!(static_cast<double>(nearest) != value) || value != value)
    return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_FLOAT8_H_
