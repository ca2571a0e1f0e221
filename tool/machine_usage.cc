// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/machine_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "fmt/format.h"
#include "runtime/bench_harness.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

// From there on the noise is probably theirs.
constexpr double kMuchSteal = 0.01, kMuchOthers = 0.1;

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

StatLine ParseStat(std::string_view line) {
  // user, nice, system, idle, iowait, irq, softirq, steal; what guests get is
  // in user already.
  enum Field { kIdle = 3, kWait = 4, kSteal = 7, kFields = 8 };
  std::istringstream words{std::string(line)};
  std::string cpu;
  words >> cpu;
  StatLine sums;
  double ticks = 0;
  for (int field = 0; field < kFields && words >> ticks; ++field) {
    sums.all += ticks;
    if (field == kSteal) {
      sums.steal = ticks;
    } else if (field != kIdle && field != kWait) {
      sums.busy += ticks;
    }
  }
  return sums;
}

UsageMeter::Counters UsageMeter::Now() {
  Counters now;
  std::ifstream stream("/proc/stat");
  std::string line;
  std::getline(stream, line);
  const StatLine stat = ParseStat(line);
  const auto ticks = static_cast<double>(std::max(sysconf(_SC_CLK_TCK), 1L));
  now.all = stat.all / ticks;
  now.busy = stat.busy / ticks;
  now.steal = stat.steal / ticks;
  rusage own = {};
  getrusage(RUSAGE_SELF, &own);
  now.own = Seconds(own.ru_utime) + Seconds(own.ru_stime);
  now.switches = own.ru_nivcsw;
  now.wall = runtime::SteadySeconds();
  return now;
}

MachineUsage UsageMeter::Take() const {
  const Counters now = Now();
  MachineUsage usage;
  usage.seconds = now.wall - start_.wall;
  usage.switches = now.switches - start_.switches;
  const double all = now.all - start_.all;
  if (all <= 0) return usage;
  const double others = now.busy - start_.busy - (now.own - start_.own);
  usage.steal = (now.steal - start_.steal) / all;
  usage.others = std::clamp(others / all, 0.0, 1.0);
  return usage;
}

bool MachineUsage::is_disturbed() const {
  return steal > kMuchSteal || others > kMuchOthers;
}

MachineUsage Together(const std::vector<MachineUsage>& usages) {
  MachineUsage sum;
  for (const MachineUsage& usage : usages) {
    sum.seconds += usage.seconds;
    sum.steal += usage.steal * usage.seconds;
    sum.others += usage.others * usage.seconds;
    sum.switches += usage.switches;
  }
  if (sum.seconds <= 0) return sum;
  sum.steal /= sum.seconds;
  sum.others /= sum.seconds;
  return sum;
}

std::string UsageText(const MachineUsage& usage) {
  std::string text = fmt::format(
      "other programs took {:.0f} % of the cores, {:.1f} % were stolen; {} in "
      "{}",
      100 * usage.others, 100 * usage.steal,
      usage.switches == 1 ? "1 switch"
                          : fmt::format("{} switches", usage.switches),
      FormatSeconds(usage.seconds));
  if (usage.is_disturbed())
    text += "; a quieter machine shows smaller differences";
  return text;
}

nlohmann::ordered_json ToJson(const MachineUsage& usage) {
  return {{"seconds", usage.seconds},
          {"steal", usage.steal},
          {"others", usage.others},
          {"involuntary_switches", usage.switches},
          {"is_disturbed", usage.is_disturbed()}};
}

}  // namespace addnorm::tool
