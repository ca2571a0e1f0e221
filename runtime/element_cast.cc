// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/element_cast.h"

#include <algorithm>
#include <array>

#include "fmt/format.h"
#include "runtime/grain.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/op.h"

namespace addnorm::runtime {
namespace {

// Elements that steps pass on to each other: they stay in the first cache.
constexpr int64_t kBlock = 512;

int SubByteBits(ir::DataType type) {
  switch (type) {
    case ir::DataType::kInt4:
    case ir::DataType::kUint4:
      return 4;
    case ir::DataType::kInt2:
    case ir::DataType::kUint2:
      return 2;
    default:
      return 0;
  }
}

bool IsSigned(ir::DataType type) {
  return type == ir::DataType::kInt4 || type == ir::DataType::kInt2;
}

bool IsHalf(ir::DataType type) {
  return type == ir::DataType::kFloat16 || type == ir::DataType::kBFloat16;
}

// Sub-byte integers are held as bytes of the same value (element_types.h).
ir::DataType HeldAs(ir::DataType type) {
  if (SubByteBits(type) == 0) return type;
  return IsSigned(type) ? ir::DataType::kInt8 : ir::DataType::kUint8;
}

}  // namespace

void ElementCast::Decode(const Step& step, const void* from, void* to,
                         int64_t count) {
  const auto* codes = static_cast<const uint8_t*>(from);
  auto* values = static_cast<double*>(to);
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<double>(FloatFromSmall(step.type, codes[i]));
}

void ElementCast::Encode(const Step& step, const void* from, void* to,
                         int64_t count) {
  const auto* values = static_cast<const double*>(from);
  auto* codes = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < count; ++i)
    codes[i] =
        SmallFromFloat(step.type, OddFromDouble(values[i]), step.options);
}

void ElementCast::TakeLowBits(const Step& step, const void* from, void* to,
                              int64_t count) {
  const int bits = SubByteBits(step.type);
  const int64_t mask = (1 << bits) - 1;
  const int64_t sign = IsSigned(step.type) ? 1 << (bits - 1) : 0;
  const auto* values = static_cast<const int64_t*>(from);
  auto* held = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < count; ++i)
    held[i] = static_cast<uint8_t>(((values[i] & mask) ^ sign) - sign);
}

template <typename To, typename From>
void ElementCast::Convert(const Step&, const void* from, void* to,
                          int64_t count) {
  const auto* values = static_cast<const From*>(from);
  auto* results = static_cast<To*>(to);
  if constexpr (kIsHalfType<From> && std::is_same_v<To, float>) {
    WidenRow(values, results, static_cast<size_t>(count));
  } else if constexpr (std::is_same_v<From, float> && kIsHalfType<To>) {
    NarrowRow(values, results, static_cast<size_t>(count));
  } else {
    for (int64_t i = 0; i < count; ++i) results[i] = CastElement<To>(values[i]);
  }
}

template <typename From, typename... To>
ElementCast::Step::Function ElementCast::ConvertTo(ir::DataType to) {
  Step::Function run = nullptr;
  (void)((to == kTypeOf<To> && (run = &Convert<To, From>, true)) || ...);
  return run;
}

template <typename... From>
ElementCast::Step::Function ElementCast::FindConvert(ir::DataType from,
                                                     ir::DataType to) {
  Step::Function run = nullptr;
  (void)((from == kTypeOf<From> &&
          (run = ConvertTo<From, ADDNORM_NUMBER_TYPES, bool>(to), true)) ||
         ...);
  return run;
}

absl::StatusOr<ElementCast> ElementCast::Create(
    ir::DataType from, ir::DataType to, const SmallFloatOptions& options) {
  ElementCast cast;
  cast.from_size_ = ElementSize(from);
  cast.to_size_ = ElementSize(to);
  ir::DataType held = HeldAs(from);
  const auto convert = [&](ir::DataType type) {
    cast.steps_.push_back(
        {FindConvert<ADDNORM_NUMBER_TYPES, bool>(held, type)});
    held = type;
  };
  // By register, and the same as directly: every half is a float.
  if (IsHalf(from) && to != from) convert(ir::DataType::kFloat);
  if (IsSmallFloat(from)) {
    cast.steps_.push_back({&Decode, from});
    held = ir::DataType::kDouble;
  }
  if (IsSmallFloat(to)) {
    if (held != ir::DataType::kDouble) convert(ir::DataType::kDouble);
    cast.steps_.push_back({&Encode, to, options});
  } else if (SubByteBits(to) > 0) {
    if (held != ir::DataType::kInt64) convert(ir::DataType::kInt64);
    cast.steps_.push_back({&TakeLowBits, to});
  } else if (held != to || cast.steps_.empty()) {
    convert(to);
  }
  for (const Step& step : cast.steps_) {
    if (step.run != nullptr) continue;
    return OpContext::Unsupported("elements of type {} cannot become {}",
                                  ir::DataTypeName(from), ir::DataTypeName(to));
  }
  return cast;
}

void ElementCast::Run(const void* from, void* to, int64_t count) const {
  if (steps_.size() == 1) return steps_[0].run(steps_[0], from, to, count);
  std::array<double, kBlock> buffers[2];
  for (int64_t at = 0; at < count; at += kBlock) {
    const int64_t length = std::min(kBlock, count - at);
    const void* source = static_cast<const std::byte*>(from) + at * from_size_;
    for (size_t k = 0; k < steps_.size(); ++k) {
      void* target = k + 1 < steps_.size()
                         ? static_cast<void*>(buffers[k % 2].data())
                         : static_cast<std::byte*>(to) + at * to_size_;
      steps_[k].run(steps_[k], source, target, length);
      source = target;
    }
  }
}

void ElementCast::Run(const Tensor& from, Tensor& to,
                      ThreadPool& threads) const {
  threads.ParallelFor(
      from.count(), kMemoryGrain, [&](int64_t begin, int64_t end) {
        Run(from.data<std::byte>() + begin * from_size_,
            to.mutable_data<std::byte>() + begin * to_size_, end - begin);
      });
}

}  // namespace addnorm::runtime
