// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What `bench --kernel` tells: a table a case, what limits it, and a verdict in
// plain words that may be that nothing was gained.
//
//   answer.text = ToText(cases, machine, terminal);
//   answer.json = ToJson(cases);
#ifndef ADDNORM_TOOL_BENCH_KERNEL_REPORT_H_
#define ADDNORM_TOOL_BENCH_KERNEL_REPORT_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tool/bench_headline.h"
#include "tool/bench_kernel.h"
#include "tool/machine_facts.h"
#include "tool/term.h"

namespace addnorm::tool {

std::string ToText(const std::vector<KernelCase>& cases,
                   const MachineFacts& machine, const Terminal& terminal);
nlohmann::ordered_json ToJson(const std::vector<KernelCase>& cases,
                              const MachineFacts& machine);

// Verdicts of all fused arms.
VerdictTally TallyOf(const std::vector<KernelCase>& cases);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_KERNEL_REPORT_H_
