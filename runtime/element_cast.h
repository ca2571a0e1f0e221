// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Elements of one type as another: what Cast means, for every pair of types
// that tensors can have, for use by any op.
//
//   - To a floating-point type: rounded once, to nearest even; infinity beyond
//     its range (small floats as SmallFloatOptions say). Integers of more than
//     53 bits are rounded to 53 bits first on their way to types of 16 bits and
//     less.
//   - A NaN keeps its sign and the top of its payload. This is no arithmetic,
//     so unlike the result of an op it is not made canonical.
//   - Integer to integer: the low bits, which for sub-byte types too are then
//     read with their sign.
//   - Floating-point to integer: towards zero to 64 bits, saturating there and
//     with 0 for NaN; then the low bits, as ONNX's own data has it for 4 and 2
//     bits. ONNX leaves what is out of range undefined; this is one rule for
//     all machines.
//   - To bool: false for ±0, true for all else.
//
//   ASSIGN_OR_RETURN(const auto cast, ElementCast::Create(from, to));
//   cast.Run(x, y, count);
#ifndef ADDNORM_RUNTIME_ELEMENT_CAST_H_
#define ADDNORM_RUNTIME_ELEMENT_CAST_H_

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/element_types.h"
#include "runtime/float8.h"
#include "runtime/tensor.h"
#include "runtime/thread_pool.h"

namespace addnorm::runtime {

class ElementCast {
 public:
  // kUnimplemented for types that tensors cannot have here.
  static absl::StatusOr<ElementCast> Create(
      ir::DataType from, ir::DataType to,
      const SmallFloatOptions& options = {});

  // Arrays of `count` elements; `to` may be `from` if the sizes are equal.
  void Run(const void* from, void* to, int64_t count) const;
  // All elements; the tensors have as many, and the types of Create.
  void Run(const Tensor& from, Tensor& to, ThreadPool& threads) const;

 private:
  struct Step {
    using Function = void (*)(const Step& step, const void* from, void* to,
                              int64_t count);
    Function run = nullptr;
    ir::DataType type = ir::DataType::kUndefined;  // small or sub-byte
    SmallFloatOptions options = {};
  };
  static void Decode(const Step&, const void*, void*, int64_t);
  static void Encode(const Step&, const void*, void*, int64_t);
  static void TakeLowBits(const Step&, const void*, void*, int64_t);
  template <typename To, typename From>
  static void Convert(const Step&, const void*, void*, int64_t);
  template <typename From, typename... To>
  static Step::Function ConvertTo(ir::DataType to);
  template <typename... From>
  static Step::Function FindConvert(ir::DataType from, ir::DataType to);

  size_t from_size_ = 0, to_size_ = 0;
  // One after another, by way of double and int64_t.
  std::vector<Step> steps_;
};

// Toward zero; see above for what is out of range.
template <typename To, typename From>
To Truncated(From value) {
  constexpr From kTwo63 = 0x1p63f;
  if (value >= -kTwo63 && value < kTwo63)
    return static_cast<To>(static_cast<int64_t>(value));
  if (value != value) return 0;
  if (value < 0) return static_cast<To>(std::numeric_limits<int64_t>::min());
  if constexpr (std::is_same_v<To, uint64_t>) {
    return value < 2 * kTwo63 ? static_cast<uint64_t>(value)
                              : std::numeric_limits<uint64_t>::max();
  }
  return static_cast<To>(std::numeric_limits<int64_t>::max());
}

// One element, for types that C++ has and the two half types.
template <typename To, typename From>
To CastElement(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else {
    const ComputeType<From> value = Widen(from);
    using Value = ComputeType<From>;
    if constexpr (std::is_same_v<To, bool>) {
      return value != Value{};
    } else if constexpr (kIsHalfType<To>) {
      // Floats and small integers are floats exactly.
      if constexpr (std::is_same_v<Value, float> || sizeof(Value) <= 2) {
        return Narrow<To>(static_cast<float>(value));
      } else {
        return Narrow<To>(OddFromDouble(static_cast<double>(value)));
      }
    } else if constexpr (std::is_floating_point_v<Value> &&
                         std::is_integral_v<To>) {
      return Truncated<To>(value);
    } else {
      return static_cast<To>(value);
    }
  }
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_ELEMENT_CAST_H_
