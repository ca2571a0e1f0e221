// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What a mistyped name may have been.
//
//   Suggestion("optimise", {"optimize", "run"});
//   // "; did you mean 'optimize'?"
#ifndef ADDNORM_TOOL_SUGGESTION_H_
#define ADDNORM_TOOL_SUGGESTION_H_

#include <string>
#include <string_view>
#include <vector>

namespace addnorm::tool {

// The nearest choice in words, or nothing if none is near.
std::string Suggestion(std::string_view given,
                       const std::vector<std::string>& choices);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_SUGGESTION_H_
