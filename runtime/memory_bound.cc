// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_bound.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "fmt/format.h"

namespace addnorm::runtime {
namespace {

namespace fs = std::filesystem;

// More than any machine has, and far from the end of the type: sums of a few
// do not overflow.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

// The first number in the file, or the one behind the word `key`.
std::optional<uint64_t> NumberIn(const fs::path& file, std::string_view key) {
  std::ifstream stream(file);
  std::string word;
  while (!key.empty() && word != key) {
    if (!(stream >> word)) return std::nullopt;
  }
  uint64_t number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

uint64_t LeftInMachine(const fs::path& root) {
  constexpr uint64_t kKilobyte = 1024;
  const fs::path file = root / "proc/meminfo";
  const auto memory = NumberIn(file, "MemAvailable:");
  if (!memory) return kNoLimit;
  return (*memory + NumberIn(file, "SwapFree:").value_or(0)) * kKilobyte;
}

// The two interfaces of control groups. What the kernel caches of files is in
// use too, and gives way.
struct GroupInterface {
  std::string_view controller;  // in /proc/self/cgroup; "": the second version
  std::string_view mount;
  std::string_view limit, usage;
  std::string_view cached[2];
};
constexpr GroupInterface kInterfaces[] = {
    {"",
     "sys/fs/cgroup",
     "memory.max",
     "memory.current",
     {"inactive_file", "active_file"}},
    {"memory",
     "sys/fs/cgroup/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
};

uint64_t LeftInGroup(const GroupInterface& interface, const fs::path& group) {
  const auto limit = NumberIn(group / interface.limit, "");  // none for "max"
  const auto usage = NumberIn(group / interface.usage, "");
  if (!limit || !usage) return kNoLimit;
  uint64_t cached = 0;
  for (const std::string_view key : interface.cached)
    cached += NumberIn(group / "memory.stat", key).value_or(0);
  const uint64_t used = *usage - std::min(*usage, cached);
  return *limit - std::min(*limit, used);
}

// Of the group and of those that it is in. In a container the upper ones may be
// out of sight, and the folder that is mounted the container's own.
uint64_t LeftInGroups(const GroupInterface& interface, const fs::path& root,
                      const fs::path& group) {
  uint64_t left = kNoLimit;
  fs::path folder = root / interface.mount;
  left = std::min(left, LeftInGroup(interface, folder));
  for (const fs::path& name : group.relative_path()) {
    folder /= name;
    left = std::min(left, LeftInGroup(interface, folder));
  }
  return left;
}

// "4:cpu,memory:/a/b" has the controllers cpu and memory.
bool HasController(std::string_view controllers, std::string_view wanted) {
  if (wanted.empty()) return controllers.empty();
  return fmt::format(",{},", controllers).find(fmt::format(",{},", wanted)) !=
         std::string::npos;
}

absl::Status TooMuch(uint64_t bytes, uint64_t left) {
  return absl::ResourceExhaustedError(
      fmt::format("{} bytes are needed, {} are left", bytes, left));
}

}  // namespace

uint64_t AvailableMemory(const fs::path& root) {
  uint64_t left = std::min(kNoLimit, LeftInMachine(root));
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    std::istringstream parts(line);
    std::string id, controllers, group;
    std::getline(parts, id, ':');
    std::getline(parts, controllers, ':');
    std::getline(parts, group);
    for (const GroupInterface& interface : kInterfaces) {
      if (HasController(controllers, interface.controller))
        left = std::min(left, LeftInGroups(interface, root, group));
    }
  }
  return left;
}

MemoryBound& MemoryBound::OfProcess() {
  static MemoryBound bound([] {
    const uint64_t available = AvailableMemory();
    return available - available / 16;
  }());
  return bound;
}

absl::Status MemoryBound::CheckRoom(uint64_t bytes) const {
  const uint64_t held = held_;
  const uint64_t left = limit_ - std::min(limit_, held);
  return bytes <= left ? absl::OkStatus() : TooMuch(bytes, left);
}

absl::Status MemoryBound::Take(uint64_t bytes) {
  // Before it is added: it may be so large that the sum overflows.
  if (bytes > limit_) return CheckRoom(bytes);
  const uint64_t before = held_.fetch_add(bytes);
  if (before + bytes <= limit_) return absl::OkStatus();
  held_ -= bytes;
  return TooMuch(bytes, limit_ - std::min(limit_, before));
}

}  // namespace addnorm::runtime
