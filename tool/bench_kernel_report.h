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
#include "tool/bench_kernel.h"
#include "tool/machine_facts.h"
#include "tool/term.h"

namespace addnorm::tool {

std::string ToText(const std::vector<KernelCase>& cases,
                   const MachineFacts& machine, const Terminal& terminal);
nlohmann::ordered_json ToJson(const std::vector<KernelCase>& cases,
                              const MachineFacts& machine);

// "Intel Xeon, 2 cores, caches 48 kB / 2.1 MB / 32 MB, AVX3, load 3.1" and the
// date; the compiler and its flags; the command.
std::string MachineText(const MachineFacts& machine, size_t width);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_KERNEL_REPORT_H_
