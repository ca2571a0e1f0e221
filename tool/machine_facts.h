// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What a reader has to know of the machine and the program to judge timings.
//
//   answer.json["machine"] = ToJson(GatherMachineFacts());
#ifndef ADDNORM_TOOL_MACHINE_FACTS_H_
#define ADDNORM_TOOL_MACHINE_FACTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace addnorm::tool {

// Sizes are bytes, 0 where the system does not say.
struct MachineFacts {
  std::string cpu;
  int cores = 1;
  int64_t l1 = 0, l2 = 0, last_level_cache = 0;
  int64_t memory = 0, available = 0;
  std::string simd;      // the target that the kernels use
  std::string governor;  // of the processor's frequency, "unknown"
  double load = 0;       // of the last minute: 2 keeps two cores busy
  std::string compiler, flags;
  std::string date;  // "2026-11-30T17:00:00Z"
  std::string command;
  std::string ort;  // ONNX Runtime's version, "" if it is not measured
};

MachineFacts GatherMachineFacts();
nlohmann::ordered_json ToJson(const MachineFacts& facts);
// "Intel Xeon, 2 cores, caches 48 kB / 2.1 MB / 32 MB, AVX3, load 3.1" and the
// date; the compiler and its flags; the command.
std::string ToText(const MachineFacts& facts, size_t width);

// This process's command line, word by word.
std::vector<std::string> OwnCommand();

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_MACHINE_FACTS_H_
