// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What a graph's nodes say of an input: which table its ids pick from, how long
// the heads of past keys are.
//
// It follows operators that it knows, and says so where it knows nothing. For
// what names say, see input_values.h and symbol_dims.h.
//
//   TableRows(*model.graph.inputs()[0]);  // 32000
#ifndef ADDNORM_TOOL_INPUT_FACTS_H_
#define ADDNORM_TOOL_INPUT_FACTS_H_

#include <cstdint>
#include <optional>

#include "passes/ir/graph.h"

namespace addnorm::tool {

// Rows of the table that an integer input picks from, through Casts and changes
// of shape, in subgraphs and functions too; 0 if that is not known.
int64_t TableRows(const ir::Value& ids);

// Of the heads in an input of past keys or values, as the attention that reads
// it has them.
std::optional<int64_t> HeadSize(const ir::Value& past);

// Of such an input where the attention keeps a fixed window in it: the fewest
// that hold it.
std::optional<int64_t> CacheRows(const ir::Value& past);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_INPUT_FACTS_H_
