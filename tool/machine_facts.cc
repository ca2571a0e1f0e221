// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/machine_facts.h"

#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string_view>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "runtime/kernels/simd_target.h"
#include "runtime/pair_arms.h"
#include "tool/report.h"
#include "tool/run_inputs.h"

namespace addnorm::tool {
namespace {

// The rest of the first line that begins so, "" if there is none.
std::string LineAfter(const char* path, std::string_view start) {
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(start)) continue;
    const size_t at = line.find_first_not_of(" \t:", start.size());
    return at == std::string::npos ? "" : line.substr(at);
  }
  return "";
}

int64_t Kilobytes(const char* start) {
  return std::atoll(LineAfter("/proc/meminfo", start).c_str()) * 1024;
}

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

int64_t CacheSize([[maybe_unused]] bool is_first) {
#ifdef _SC_LEVEL1_DCACHE_SIZE
  const int64_t size =
      sysconf(is_first ? _SC_LEVEL1_DCACHE_SIZE : _SC_LEVEL2_CACHE_SIZE);
  return size > 0 ? size : 0;
#else
  return 0;
#endif
}

std::string OrUnknown(std::string text) {
  return text.empty() ? "unknown" : text;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words)
    line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace

std::string ToText(const MachineFacts& facts, size_t width) {
  const auto size = [](int64_t bytes) {
    return bytes == 0 ? std::string("?")
                      : FormatBytes(static_cast<uint64_t>(bytes));
  };
  return Paragraph(
             "",
             fmt::format(
                 "{}, {}, caches {} / {} / {}, memory {}, {}, governor {}, "
                 "load {:.1f}{}, {}",
                 facts.cpu, Plural(facts.cores, "core"), size(facts.l1),
                 size(facts.l2), size(facts.last_level_cache),
                 size(facts.memory), facts.simd, facts.governor, facts.load,
                 facts.ort.empty() ? "" : ", ONNX Runtime " + facts.ort,
                 facts.date),
             width) +
         Paragraph("", fmt::format("{}, {}", facts.compiler, facts.flags),
                   width) +
         Paragraph("$ ", ir::Printable(facts.command), width);
}

std::vector<std::string> OwnCommand() {
  std::ifstream stream("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(stream, word, '\0');)
    words.push_back(word);
  return words;
}

MachineFacts GatherMachineFacts() {
  MachineFacts facts;
  facts.cpu = OrUnknown(LineAfter("/proc/cpuinfo", "model name"));
  facts.cores = DefaultThreads();
  facts.l1 = CacheSize(true);
  facts.l2 = CacheSize(false);
  facts.last_level_cache = runtime::LastLevelCacheSize();
  facts.memory = Kilobytes("MemTotal:");
  facts.available = Kilobytes("MemAvailable:");
  facts.simd = runtime::SimdTargets().front().name;
  facts.governor = OrUnknown(
      LineAfter("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", ""));
  facts.load = std::atof(LineAfter("/proc/loadavg", "").c_str());
  facts.compiler = ADDNORM_COMPILER;
  facts.flags = ADDNORM_FLAGS;
  facts.date = Now();
  facts.command = Joined(OwnCommand());
  return facts;
}

nlohmann::ordered_json ToJson(const MachineFacts& facts) {
  return {
      {"cpu", facts.cpu},
      {"cores", facts.cores},
      {"l1_bytes", facts.l1},
      {"l2_bytes", facts.l2},
      {"last_level_cache_bytes", facts.last_level_cache},
      {"memory_bytes", facts.memory},
      {"available_bytes", facts.available},
      {"simd", facts.simd},
      {"governor", facts.governor},
      {"load", facts.load},
      {"compiler", facts.compiler},
      {"flags", facts.flags},
      {"date", facts.date},
      {"command", facts.command},
      {"onnx_runtime", facts.ort.empty() ? nlohmann::ordered_json()
                                         : nlohmann::ordered_json(facts.ort)}};
}

}  // namespace addnorm::tool
