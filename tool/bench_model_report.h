// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What `bench MODEL` tells: end to end, the sites alone, their share, memory.
//
//   answer.text = ToText(bench, machine, terminal);
#ifndef ADDNORM_TOOL_BENCH_MODEL_REPORT_H_
#define ADDNORM_TOOL_BENCH_MODEL_REPORT_H_

#include <string>

#include "nlohmann/json.hpp"
#include "tool/bench_model.h"
#include "tool/machine_facts.h"
#include "tool/term.h"

namespace addnorm::tool {

// Of a model that came with fused sites: what its unfused arm is; else "".
std::string CameFusedText(int64_t fused_before);

std::string ToText(const ModelBench& bench, const MachineFacts& machine,
                   const Terminal& terminal);
nlohmann::ordered_json ToJson(const ModelBench& bench,
                              const MachineFacts& machine);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_MODEL_REPORT_H_
