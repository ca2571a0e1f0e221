// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What a person can do about a site that was not fused, by its reason.
//
// Reasons are made where conditions are checked and name values; hints are rows
// of a table, the first whose text stands in the reason.
//
//   HintFor("epsilon: 'e' can be overridden by the caller");
//   // "take it out of the graph's inputs, if no caller sets it"
#ifndef ADDNORM_PASSES_HINTS_H_
#define ADDNORM_PASSES_HINTS_H_

#include <string_view>

namespace addnorm::passes {

// "" where there is nothing to be done.
std::string_view HintFor(std::string_view reason);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_HINTS_H_
