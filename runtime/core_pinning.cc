// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/core_pinning.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <utility>

#include "fmt/format.h"

namespace addnorm::runtime {
namespace {

// Of the pinning that lives. Workers read it while they start, and pools are
// started by the thread that it belongs to.
const std::vector<int>* pinned_cores = nullptr;

bool Pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

// The first thread of the core that this one belongs to; itself if the system
// does not say.
int FirstSibling(int core) {
  std::ifstream list(fmt::format(
      "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", core));
  int first = core;
  return list >> first ? first : core;
}

}  // namespace

std::vector<int> AllowedCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  const auto here = std::find(cores.begin(), cores.end(), sched_getcpu());
  if (here != cores.end()) std::rotate(cores.begin(), here, cores.end());
  std::vector<int> taken;
  std::stable_partition(cores.begin(), cores.end(), [&](int core) {
    const int first = FirstSibling(core);
    const bool is_taken =
        std::find(taken.begin(), taken.end(), first) != taken.end();
    taken.push_back(first);
    return !is_taken;
  });
  return cores;
}

CorePinning::CorePinning(int threads) {
  if (threads == 0) return;
  std::vector<int> cores = AllowedCores();
  if (cores.size() < static_cast<size_t>(threads)) return;
  cores.resize(static_cast<size_t>(threads));
  if (sched_getaffinity(0, sizeof before_, &before_) != 0 || !Pin(cores[0]))
    return;
  cores_ = std::move(cores);
  pinned_cores = &cores_;
}

CorePinning::~CorePinning() {
  if (cores_.empty()) return;
  pinned_cores = nullptr;
  sched_setaffinity(0, sizeof before_, &before_);
}

std::vector<int> CorePinning::cores(int threads) const {
  const auto count = std::min(cores_.size(), static_cast<size_t>(threads));
  return {cores_.begin(), cores_.begin() + static_cast<std::ptrdiff_t>(count)};
}

void CorePinning::PinWorker(int index) {
  if (pinned_cores != nullptr &&
      static_cast<size_t>(index) < pinned_cores->size())
    Pin((*pinned_cores)[static_cast<size_t>(index)]);
}

}  // namespace addnorm::runtime
