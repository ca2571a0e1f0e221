// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What others did to the machine while something was measured: the time that
// the hypervisor and other programs took, and how often we had to wait.
//
// Of the whole machine, to a hundredth of a second: it explains noise, and
// corrects nothing.
//
//   const UsageMeter meter;
//   …
//   meter.Take().others;  // 0.43: other programs had 43 % of the cores
#ifndef ADDNORM_TOOL_MACHINE_USAGE_H_
#define ADDNORM_TOOL_MACHINE_USAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace addnorm::tool {

struct MachineUsage {
  double seconds = 0;  // of the clock
  // Shares of the time of all cores.
  double steal = 0;   // by other machines of the same host
  double others = 0;  // by other programs
  // Of this process, by another program that wanted its core.
  int64_t switches = 0;

  bool is_disturbed() const;
};

class UsageMeter {
 public:
  UsageMeter() : start_(Now()) {}
  MachineUsage Take() const;

 private:
  struct Counters {
    double wall = 0, all = 0, busy = 0, steal = 0, own = 0;  // seconds
    int64_t switches = 0;
  };
  static Counters Now();

  Counters start_;
};

// Fields of a line of /proc/stat that begins with "cpu ", in ticks: all time,
// time of programs and the system, and time that was stolen.
struct StatLine {
  double all = 0, busy = 0, steal = 0;
};
StatLine ParseStat(std::string_view line);

// Of several measurements, one after the other.
MachineUsage Together(const std::vector<MachineUsage>& usages);

// "other programs took 43 % of the cores, 0.0 % were stolen; 1200 switches in
// 33.1 s", and what to do about it if that is much.
std::string UsageText(const MachineUsage& usage);
nlohmann::ordered_json ToJson(const MachineUsage& usage);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_MACHINE_USAGE_H_
