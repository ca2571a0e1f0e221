// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The inputs of a run: read from a folder where they are there, generated from
// the declared types where not.
//
// A folder has input_N.pb (N is the place among the graph's inputs, as in
// ONNX's backend tests) or NAME.npy. Inputs that have an initializer are
// optional. Used by every command that runs models.
//
//   ASSIGN_OR_RETURN(RunInputs inputs,
//                    GatherInputs(model, {.folder = "data", .seed = 1}));
//   executor->Run(inputs.tensors);
#ifndef ADDNORM_TOOL_RUN_INPUTS_H_
#define ADDNORM_TOOL_RUN_INPUTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/ir/model.h"
#include "runtime/tensor.h"
#include "tool/symbol_dims.h"

namespace addnorm::tool {

struct InputRequest {
  std::string folder = {};  // "": all are generated
  uint64_t seed = 0;
  DimValues dims = {};
  double scale = 1;  // of generated normally distributed floats
};

struct RunInputs {
  // In the order of the graph's inputs; absent: its initializer is taken.
  std::vector<runtime::Tensor> tensors;
  // Of each: "input_0.pb", "generated: ids below 256", "initializer".
  std::vector<std::string> origins;
  std::vector<ChosenDim> dims;
  // What is odd about the given inputs: a symbol with two values.
  std::vector<std::string> warnings;
};

// Errors name the file or input, what was expected and found, and what the
// folder may hold. A folder without a file of an input, and a .pb or .npy file
// in it that is none (and not the model's output), is kFailedPrecondition.
absl::StatusOr<RunInputs> GatherInputs(const ir::Model& model,
                                       const InputRequest& request);

// Which dimensions were guessed and how to give others, where a run failed of
// what a wrong guess may cause; "" otherwise.
std::string GuessHint(const absl::Status& failure,
                      const std::vector<ChosenDim>& dims);

// Of "NAME=NUMBER" words. kFailedPrecondition for others.
absl::StatusOr<DimValues> ParseDims(const std::vector<std::string>& words);

// What --threads is without being given: the cores.
int DefaultThreads();
inline constexpr int kMostThreads = 1024;

// A file name for each value name, without folder and ending. A slash,
// backslash, colon or control character becomes "_", so does a dot at the
// beginning; a name that is taken gets "_2", "_3", …
std::vector<std::string> FileStems(const std::vector<ir::Value*>& values);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_RUN_INPUTS_H_
