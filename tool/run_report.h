// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What `run` tells: inputs and where they are from, outputs in numbers or where
// they were written, time and memory, and on request the profile and the
// memory plan.
//
//   answer.text = ToText(result, terminal);
//   answer.json = ToJson(result);
#ifndef ADDNORM_TOOL_RUN_REPORT_H_
#define ADDNORM_TOOL_RUN_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "passes/ir/model.h"
#include "runtime/memory_plan.h"
#include "runtime/profile.h"
#include "runtime/tensor.h"
#include "tool/false_declarations.h"
#include "tool/run_inputs.h"
#include "tool/statistics.h"
#include "tool/term.h"

namespace addnorm::tool {

struct RunResult {
  const ir::Model* model = nullptr;
  std::string name;  // of the model's file
  uint64_t seed = 0;
  RunInputs inputs;
  std::vector<runtime::Tensor> outputs;
  std::vector<std::string> files;  // of each output; empty: not written
  int threads = 1;
  double seconds = 0;
  size_t peak_bytes = 0;
  size_t weight_bytes = 0;
  std::vector<FalseDeclaration> false_declarations;
  bool is_verbose = false;  // lists are not cut
  const runtime::Profile* profile = nullptr;
  const runtime::MemoryPlan* plan = nullptr;
};

std::string ToText(const RunResult& result, const Terminal& terminal);
nlohmann::ordered_json ToJson(const RunResult& result);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_RUN_REPORT_H_
