// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What bench does with the machine: threads on cores, and what others took.
#include <sched.h>

#include <algorithm>
#include <vector>

#include "runtime/core_pinning.h"
#include "runtime/thread_pool.h"
#include "tests/support/catch.h"
#include "tests/support/sandbox.h"
#include "tool/machine_usage.h"

namespace addnorm::tests {
namespace {

using runtime::CorePinning;
using tool::MachineUsage;

std::vector<int> CoresOfThisThread() {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

TEST_CASE("a pinned thread keeps to one core and gets the others back",
          "[bench]") {
  const std::vector<int> before = CoresOfThisThread();
  {
    const CorePinning pinning(1);
    REQUIRE(pinning.cores().size() == 1);
    CHECK(CoresOfThisThread() == pinning.cores());
  }
  CHECK(CoresOfThisThread() == before);
}

TEST_CASE("more threads than cores are not pinned", "[bench]") {
  const std::vector<int> before = CoresOfThisThread();
  const CorePinning pinning(static_cast<int>(before.size()) + 1);
  CHECK(pinning.cores().empty());
  CHECK(CoresOfThisThread() == before);
  CHECK(CorePinning(0).cores().empty());
}

TEST_CASE("allowed cores are those of the process, once each", "[bench]") {
  std::vector<int> cores = runtime::AllowedCores();
  std::sort(cores.begin(), cores.end());
  CHECK(cores == CoresOfThisThread());
}

TEST_CASE("workers of a pool keep to a core of their own", "[bench]") {
  const int threads =
      std::min(2, static_cast<int>(runtime::AllowedCores().size()));
  const CorePinning pinning(threads);
  runtime::ThreadPool pool(threads);
  std::vector<std::vector<int>> seen(static_cast<size_t>(threads));
  pool.ParallelFor(threads, 1, [&](int64_t begin, int64_t) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set))
        seen[static_cast<size_t>(begin)].push_back(core);
    }
  });
  std::vector<int> cores;
  for (const auto& of_thread : seen) {
    REQUIRE(of_thread.size() == 1);
    cores.push_back(of_thread[0]);
  }
  CHECK(cores == pinning.cores());
}

TEST_CASE("the fields of /proc/stat are told apart", "[bench]") {
  // user nice system idle iowait irq softirq steal guest guest_nice
  const tool::StatLine line =
      tool::ParseStat("cpu  100 10 50 800 40 3 7 20 99 9");
  CHECK(line.busy == 100 + 10 + 50 + 3 + 7);
  CHECK(line.steal == 20);
  CHECK(line.all == 170 + 800 + 40 + 20);
  CHECK(tool::ParseStat("").all == 0);
}

TEST_CASE("usages are averaged over their time, and disturbances are told of",
          "[bench]") {
  const MachineUsage quiet{
      .seconds = 3, .steal = 0, .others = 0.02, .switches = 1};
  const MachineUsage loud{
      .seconds = 1, .steal = 0.04, .others = 0.5, .switches = 9};
  const MachineUsage both = tool::Together({quiet, loud});
  CHECK(both.seconds == Approx(4));
  CHECK(both.steal == Approx(0.01));
  CHECK(both.others == Approx(0.14));
  CHECK(both.switches == 10);
  CHECK_FALSE(quiet.is_disturbed());
  CHECK(both.is_disturbed());
  CHECK(MachineUsage{.steal = 0.02}.is_disturbed());
  CHECK(tool::UsageText(quiet) ==
        "other programs took 2 % of the cores, 0.0 % were stolen; 1 switch in "
        "3.00 s");
  CHECK(Contains(tool::UsageText(loud), "a quieter machine"));
  CHECK(tool::Together({}).seconds == 0);
}

TEST_CASE("a meter measures at least the time that passes", "[bench]") {
  const tool::UsageMeter meter;
  const MachineUsage first = meter.Take();
  const MachineUsage second = meter.Take();
  CHECK(first.seconds >= 0);
  CHECK(second.seconds >= first.seconds);
  CHECK(second.switches >= first.switches);
}

}  // namespace
}  // namespace addnorm::tests
