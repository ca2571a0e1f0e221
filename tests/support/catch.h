// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Catch2, in version 2 (Debian 12) or 3 (Debian 13). Include this and nothing
// of Catch2's own. For use is what means the same in both: TEST_CASE, SECTION,
// REQUIRE, CHECK, INFO, CAPTURE, GENERATE, Approx, and the matchers below with
// REQUIRE_THAT and CHECK_THAT.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>
inline auto ContainsSubstring(const std::string& text) {
  return Catch::Matchers::Contains(text);
}
#endif
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
