// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/statistics.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "absl/numeric/int128.h"

namespace addnorm::tool {
namespace {

using runtime::Tensor;

constexpr size_t kFirstValues = 4;

// What sums of elements are kept in: no sum of 64-bit integers overflows.
template <typename T>
using SumOf = std::conditional_t<std::is_integral_v<T>, absl::int128, double>;

template <typename T>
Number AsNumber(T value) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<double>(value);
  if constexpr (std::is_signed_v<T>) return static_cast<int64_t>(value);
  return static_cast<uint64_t>(value);
}

template <typename T>
double MeanOf(SumOf<T> sum, int64_t count) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<double>(static_cast<long double>(sum) /
                               static_cast<long double>(count));
  } else {
    return sum / static_cast<double>(count);
  }
}

template <typename T>
void Gather(const Tensor& tensor, Statistics& out) {
  using Computed = runtime::ComputeType<T>;
  std::optional<Computed> least, most;
  SumOf<Computed> sum = 0;
  for (const T element : tensor.elements<T>()) {
    const Computed value = runtime::Widen(element);
    if (out.first.size() < kFirstValues) out.first.push_back(AsNumber(value));
    if constexpr (std::is_floating_point_v<Computed>) {
      out.nan += std::isnan(value) ? 1 : 0;
      out.infinite += std::isinf(value) ? 1 : 0;
      if (std::isnan(value)) continue;
    }
    least = std::min(least.value_or(value), value);
    most = std::max(most.value_or(value), value);
    sum += static_cast<SumOf<Computed>>(value);
  }
  if (!least) return;
  out.min = AsNumber(*least);
  out.max = AsNumber(*most);
  out.mean = MeanOf<Computed>(sum, out.count - out.nan);
}

template <typename... Ts>
void GatherAny(const Tensor& tensor, Statistics& out) {
  (void)((tensor.type() == runtime::kTypeOf<Ts> &&
          (Gather<Ts>(tensor, out), true)) ||
         ...);
}

}  // namespace

Statistics StatisticsOf(const Tensor& tensor) {
  using namespace runtime;  // NOLINT: the names of element types
  Statistics statistics;
  statistics.count = tensor.count();
  GatherAny<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t,
            uint8_t, uint16_t, uint32_t, uint64_t, bool>(tensor, statistics);
  return statistics;
}

}  // namespace addnorm::tool
