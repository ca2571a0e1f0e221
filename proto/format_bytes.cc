// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/format_bytes.h"

#include <cstddef>
#include <iterator>
#include <string_view>

#include "fmt/format.h"

namespace addnorm::proto {

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1000)
    return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
  constexpr std::string_view kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  // 999.95 would be printed as 1000.0.
  while (value >= 999.95 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace addnorm::proto
