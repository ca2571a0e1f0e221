// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Expectations on a printed text, in order, as in LLVM's FileCheck.
//
// A CHECK line is a substring that stands behind the one before it; a CHECK-NOT
// line is a substring that does not stand between its neighbours (or the start
// or the end of the text).
//
//   std::string problem = Mismatch({{"y, s = "}, {"Sqrt", /*is_not=*/true}},
//   text);
#ifndef ADDNORM_TESTS_SUPPORT_CHECK_LINES_H_
#define ADDNORM_TESTS_SUPPORT_CHECK_LINES_H_

#include <string>
#include <string_view>
#include <vector>

namespace addnorm::tests {

struct CheckLine {
  std::string text;
  bool is_not = false;
};

// Says which line does not hold; empty if all do.
std::string Mismatch(const std::vector<CheckLine>& lines,
                     std::string_view text);

}  // namespace addnorm::tests

#endif  // ADDNORM_TESTS_SUPPORT_CHECK_LINES_H_
