// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/statistics.h"

#include <algorithm>
#include <cmath>

namespace addnorm::tool {
namespace {

using runtime::Tensor;

constexpr size_t kFirstValues = 4;

template <typename T>
void Gather(const Tensor& tensor, Statistics& out) {
  using Computed = runtime::ComputeType<T>;
  out.is_integer = std::is_integral_v<Computed>;
  double least = INFINITY, most = -INFINITY, sum = 0;
  for (const T element : tensor.elements<T>()) {
    const auto value = static_cast<double>(runtime::Widen(element));
    if (out.first.size() < kFirstValues) out.first.push_back(value);
    if (std::isnan(value)) {
      ++out.nan;
      continue;
    }
    out.infinite += std::isinf(value) ? 1 : 0;
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
  }
  const int64_t numbers = out.count - out.nan;
  if (numbers == 0) return;
  out.min = least;
  out.max = most;
  out.mean = sum / static_cast<double>(numbers);
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
