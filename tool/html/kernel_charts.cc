// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/html/kernel_charts.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "tool/bench_result.h"
#include "tool/html/bench_words.h"
#include "tool/html/markup.h"
#include "tool/report.h"

namespace addnorm::tool::html {
namespace {

using runtime::Interval;

// ---- ratios

// Cases of one recipe and number of threads: one set of charts.
std::string Setting(const KernelView& result) {
  return fmt::format("{}, {}", result.recipe, Plural(result.threads, "thread"));
}

RatioRow ToRow(const KernelView& result, const StoresRow& stores) {
  return {result.name(), result.comparison(stores.fused)};
}

std::vector<RatioRow> ToRows(const Kernels& cases, const StoresRow& stores) {
  std::vector<RatioRow> rows;
  for (const KernelView& result : cases) rows.push_back(ToRow(result, stores));
  return rows;
}

std::string Described(const std::vector<RatioRow>& rows) {
  std::string text;
  for (const RatioRow& row : rows)
    text += fmt::format("{}: {}. ", row.label, InWords(row.comparison));
  return text;
}

// "3.1 %"; "not known" where too few rounds make no interval.
std::string NoiseWord(double noise, size_t rounds) {
  return rounds < runtime::kLeastRounds ? "not known"
                                        : fmt::format("{:.1f} %", 100 * noise);
}

std::string RatioTable(const std::vector<RatioRow>& rows,
                       const std::string& caption) {
  TableData table{
      caption, "<>>>", {"case", "fused / unfused", "noise", "verdict"}, {}};
  for (const RatioRow& row : rows) {
    const runtime::PairedEstimate& estimate = row.comparison.estimate;
    table.rows.push_back({row.label, RatioText(estimate),
                          NoiseWord(row.comparison.noise, estimate.rounds),
                          InBrief(row.comparison)});
  }
  return Table(table);
}

std::string RatioFigure(const Kernels& cases, const StoresRow& stores,
                        const std::string& id, double low, double high) {
  const std::string heading =
      stores.name == "in place"
          ? "In place"
          : fmt::format("{} stores",
                        stores.name == "plain" ? "Plain" : "Streaming");
  RatioChart chart{.text = {id, heading + ": time of fused / unfused", ""},
                   .rows = ToRows(cases, stores),
                   .low = low,
                   .high = high};
  chart.text.description = Described(chart.rows);
  return Figure({heading, ""}, Render(chart),
                RatioTable(chart.rows, chart.text.title));
}

std::string RatioGrid(const Kernels& cases, size_t number) {
  double low = 1, high = 1;
  for (const StoresRow& stores : kStores)
    Widen(ToRows(cases, stores), low, high);
  std::string figures;
  for (size_t i = 0; i < std::size(kStores); ++i)
    figures += RatioFigure(cases, kStores[i],
                           fmt::format("ratio-{}-{}", number, i), low, high);
  return SideBySide(figures);
}

std::string VerdictTable(const Kernels& cases) {
  TableData table{"Where fusing is worth it",
                  "<<<<<<",
                  {"case", "setting", "plain", "streaming", "in place",
                   "what limits fused"},
                  {}};
  for (const KernelView& result : cases) {
    std::vector<std::string> row = {result.name(), Setting(result)};
    for (const StoresRow& stores : kStores)
      row.push_back(InBrief(result.comparison(stores.fused)));
    row.push_back(result.limit);
    table.rows.push_back(std::move(row));
  }
  return Table(table);
}

// ---- arms

// The arm that all others are compared with.
bool IsBase(std::string_view arm) { return arm == kStores[0].unfused; }

Bar ToBar(const KernelView& result, std::string_view name,
          const char* classes) {
  const ArmView& arm = result.arm(name);
  const bool is_base = IsBase(name);
  Bar bar{.classes = classes,
          .value = is_base ? 1 : arm.against_unfused.ratio,
          .interval = {},
          .text = ShortSeconds(arm.seconds),
          .tip = fmt::format("{}: {}", arm.name, ShortSeconds(arm.seconds))};
  if (is_base) return bar;
  if (arm.against_unfused.rounds >= runtime::kLeastRounds)
    bar.interval = arm.against_unfused.Widest();
  bar.tip += fmt::format(", {} of unfused", RatioText(arm.against_unfused));
  return bar;
}

// Its time against that of its like; "" if it has none.
std::string LikeText(const ArmView& arm) {
  return arm.comparison ? RatioText(arm.comparison->estimate) : "";
}

TableData ArmTable(const KernelView& result) {
  TableData table{result.name() + ", " + Setting(result),
                  "<>>>",
                  {"arm", "time", "/ unfused", "/ unfused, same stores"},
                  {}};
  for (const StoresRow& stores : kStores) {
    for (const std::string_view name : {stores.unfused, stores.fused}) {
      const ArmView& arm = result.arm(name);
      table.rows.push_back({arm.name, ShortSeconds(arm.seconds),
                            IsBase(name) ? "" : RatioText(arm.against_unfused),
                            LikeText(arm)});
    }
  }
  return table;
}

std::string ArmsFigure(const KernelView& result, const std::string& id) {
  BarChart chart{.text = {id, "Times of the arms: " + result.name(), ""},
                 .axis = "time; unfused with plain stores = 1",
                 .groups = {},
                 .band = Interval{1 / (1 + result.noise), 1 + result.noise}};
  for (const StoresRow& stores : kStores) {
    const std::string outcome = InBrief(result.comparison(stores.fused));
    chart.groups.push_back({std::string(stores.name),
                            outcome,
                            {ToBar(result, stores.unfused, "unfused"),
                             ToBar(result, stores.fused, "fused")}});
    chart.text.description +=
        fmt::format("{}: unfused {}, fused {}, {}. ", stores.name,
                    ShortSeconds(result.arm(stores.unfused).seconds),
                    ShortSeconds(result.arm(stores.fused).seconds), outcome);
  }
  std::string caption =
      fmt::format("{}. Limit: {}. Noise {}; {} of {}, {} time.",
                  Setting(result), result.limiter,
                  NoiseWord(result.noise, static_cast<size_t>(result.rounds)),
                  Plural(result.rounds, "round"), Plural(result.calls, "call"),
                  result.clock);
  if (!result.not_as_modelled.empty()) {
    caption += fmt::format(" Not as modelled: {}.",
                           fmt::join(result.not_as_modelled, "; "));
  }
  return Figure({result.name(), caption}, Render(chart),
                Table(ArmTable(result)));
}

}  // namespace

Series LookOf(const StoresRow& stores, bool is_fused) {
  struct Look {
    std::string_view name;
    const char* dashes;
    Shape shape;
  };
  constexpr Look kLooks[] = {{"plain", "solid", Shape::kCircle},
                             {"streaming", "dashed", Shape::kTriangle},
                             {"in place", "dotted", Shape::kSquare}};
  const Look& look = *std::find_if(
      std::begin(kLooks), std::end(kLooks),
      [&](const Look& known) { return known.name == stores.name; });
  return {.classes =
              fmt::format("{} {}", is_fused ? "fused" : "unfused", look.dashes),
          .shape = look.shape,
          .points = {},
          .tips = {}};
}

std::vector<LegendEntry> ArmKeys(bool has_line) {
  std::vector<LegendEntry> entries;
  ForArms([&](Series look, std::string_view name) {
    look.has_line = has_line;
    entries.push_back({LegendKey(look), std::string(name)});
  });
  return entries;
}

std::vector<KernelGroup> GroupsOf(const Kernels& cases) {
  Named<std::vector<const KernelView*>> named;
  for (const KernelView& result : cases)
    EntryOf(named, result.group()).push_back(&result);
  std::vector<KernelGroup> groups;
  for (auto& [name, members] : named) {
    std::stable_sort(members.begin(), members.end(),
                     [](const KernelView* a, const KernelView* b) {
                       return a->tensor_bytes < b->tensor_bytes;
                     });
    groups.push_back({name, std::move(members)});
  }
  return groups;
}

std::string RatiosContent(const Kernels& cases) {
  Named<Kernels> settings;
  for (const KernelView& result : cases)
    EntryOf(settings, Setting(result)).push_back(result);
  std::string content = Paragraph(
      "Each mark is the time of the fused op over that of the unfused pair "
      "with the same kind of stores, with its 95 % interval: left of 1, fused "
      "is faster. The band is the noise of that case, what unfused shows "
      "against itself; what lies within it is not measurable. Streaming is of "
      "no use where fused with plain stores is faster. The axis is "
      "logarithmic.");
  for (size_t i = 0; i < settings.size(); ++i) {
    if (settings.size() > 1) content += Paragraph(settings[i].first + ":");
    content += RatioGrid(settings[i].second, i);
  }
  return content + VerdictTable(cases);
}

std::string ArmsContent(const Kernels& cases) {
  std::string figures;
  for (size_t i = 0; i < cases.size(); ++i)
    figures += ArmsFigure(cases[i], fmt::format("arms-{}", i));
  return Paragraph(
             "Bars are times in units of the unfused pair with plain stores, "
             "with 95 % intervals; the band around 1 is the noise. Below each "
             "kind of stores: fused against unfused with the same. What is "
             "shorter from one kind to the next is the buffers’ gain, not "
             "that of fusing.") +
         Legend(BarKeys()) + SideBySide(figures);
}

std::string NumbersContent(const Kernels& cases) {
  TableData table{"All arms of all cases",
                  "<<<>>>>>>",
                  {"case", "setting", "arm", "time", "ns per row", "GB/s",
                   "of best probe", "/ unfused", "/ unfused, same stores"},
                  {}};
  for (const KernelView& result : cases) {
    for (const ArmView& arm : result.arms) {
      const bool has_bytes = arm.bytes > 0;  // not of other runtimes' arms
      table.rows.push_back(
          {result.name(), Setting(result), arm.name, ShortSeconds(arm.seconds),
           fmt::format("{:.0f}",
                       1e9 * arm.seconds / static_cast<double>(result.rows)),
           has_bytes ? fmt::format("{:.1f}", arm.bandwidth / 1e9) : "",
           has_bytes ? Percent(arm.share_of_best) : "",
           arm.is_probe || IsBase(arm.name) ? ""
                                            : RatioText(arm.against_unfused),
           LikeText(arm)});
    }
  }
  return Table(table);
}

}  // namespace addnorm::tool::html
