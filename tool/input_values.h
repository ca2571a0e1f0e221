// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Values for an input that nobody gave: ids that are rows of the table that
// they pick from, positions, masks of ones, normally distributed floats.
//
// The same seed gives the same bits on every machine: integers of a
// std::mt19937_64, and sums of them, which floats hold exactly. What an input
// is for is told by its type, its name, and the node that reads it.
//
//   const InputValues values = ValuesFor(input, /*past=*/0, /*total=*/8);
//   ASSIGN_OR_RETURN(Tensor x, Generate(values, input, {1, 8}, /*seed=*/0));
//   // x holds values.description: "ids below 32000"
#ifndef ADDNORM_TOOL_INPUT_VALUES_H_
#define ADDNORM_TOOL_INPUT_VALUES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "passes/ir/graph.h"
#include "runtime/tensor.h"

namespace addnorm::tool {

struct InputValues {
  enum class Kind { kNormal, kUniform, kConstant, kPositions };
  Kind kind = Kind::kNormal;
  // kUniform: integers in [first, first + count). kConstant: first.
  // kPositions: first, first + 1, … along the last axis, below count.
  int64_t first = 0;
  int64_t count = 0;
  double scale = 1;  // of kNormal
  std::string description;
};

// `past` and `total` are numbers of tokens, for masks and positions.
InputValues ValuesFor(const ir::Value& input, int64_t past, int64_t total);

// Depends on the input's name and the seed, and on no other input.
// kUnimplemented for types that cannot be made (strings).
absl::StatusOr<runtime::Tensor> Generate(const InputValues& values,
                                         const ir::Value& input,
                                         runtime::Dims dims, uint64_t seed);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_INPUT_VALUES_H_
