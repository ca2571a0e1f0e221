// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What --json says of a benchmark, in types: the page shows that object and
// measures nothing itself, so that it and the object cannot differ.
//
//   for (const KernelView& result : KernelViews(report)) …
#ifndef ADDNORM_TOOL_HTML_BENCH_VIEW_H_
#define ADDNORM_TOOL_HTML_BENCH_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/paired_statistics.h"
#include "tool/bench_comparison.h"

namespace addnorm::tool::html {

using Json = nlohmann::ordered_json;

struct ArmView {
  std::string name;
  double seconds = 0;  // median of a call
  runtime::PairedEstimate against_unfused;
  // With its like: of --kernel, the unfused arm with the same stores.
  std::optional<ArmComparison> comparison;
  // Of --kernel.
  bool is_probe = false;
  double bytes = 0, bandwidth = 0, share_of_best = 0;  // modelled, per second
};

// One of --kernel's cases.
struct KernelView {
  std::string recipe, type, cache, clock;
  int64_t rows = 0, length = 0, threads = 1, rounds = 0, calls = 1;
  double tensor_bytes = 0, noise = 0;
  std::string limit, limiter;                // a word or two, and a sentence
  std::vector<std::string> not_as_modelled;  // "fused is slower than …"
  std::vector<ArmView> arms;

  const ArmView& arm(std::string_view name) const;
  // Of a fused arm, with its like.
  const ArmComparison& comparison(std::string_view arm) const;
  double elements() const {
    return static_cast<double>(rows) * static_cast<double>(length);
  }
  std::string shape() const;  // "512×4096"
  std::string name() const;   // "f32 512×4096 cold"
  // Of cases that differ in shape alone: "f32, cold caches, 1 thread".
  std::string group() const;
};
std::vector<KernelView> KernelViews(const Json& report);

// What belongs to each name, in the order in which names came up.
template <typename T>
using Named = std::vector<std::pair<std::string, T>>;

// What belongs to the name; empty for one that is new.
template <typename T>
T& EntryOf(Named<T>& entries, const std::string& name) {
  for (auto& [known, entry] : entries) {
    if (known == name) return entry;
  }
  return entries.emplace_back(name, T()).second;
}

// The kinds of stores, each with an arm of either kind.
struct StoresRow {
  std::string_view name, unfused, fused;
};
inline constexpr StoresRow kStores[] = {
    {"plain", "unfused", "fused"},
    {"streaming", "unfused streaming", "fused streaming"},
    {"in place", "unfused in place", "fused in place"},
};

// "end to end" or "sites" of a model.
struct PartView {
  std::string what;
  int64_t rounds = 0, calls = 1;
  double noise = 0;
  std::vector<ArmView> arms;  // unfused, once more, fused if there are sites

  const ArmView& arm(std::string_view name) const;
  const ArmComparison& fused() const;  // with unfused
};

struct ModelView {
  std::string model;
  int64_t sites = 0, fused_before = 0, threads = 1;
  std::string dims;  // "n=3, sequence=8"
  std::string headline;
  bool has_same_bits = false;
  double site_share = 0, unfused_peak = 0, fused_peak = 0;
  std::vector<PartView> parts;  // without sites the first at most
};
ModelView ViewModel(const Json& report);

}  // namespace addnorm::tool::html

#endif  // ADDNORM_TOOL_HTML_BENCH_VIEW_H_
