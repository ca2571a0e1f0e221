// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "tool/bench_result.h"
#include "tool/html/charts.h"
#include "tool/html/frame.h"
#include "tool/html/markup.h"
#include "tool/html/other_arms.h"
#include "tool/html/page.h"
#include "tool/report.h"

namespace addnorm::tool::html {
namespace {

// What a part is called in charts.
std::string Label(const PartView& part) {
  return part.what == "sites" ? "sites alone" : part.what;
}

std::string RatiosFigure(const ModelView& model) {
  RatioChart chart{.text = {"ratios-chart", "Time of fused / unfused", ""},
                   .rows = {},
                   .low = 1,
                   .high = 1};
  for (const PartView& part : model.parts) {
    chart.rows.push_back({Label(part), part.fused()});
    chart.text.description +=
        fmt::format("{}: {}. ", Label(part), InWords(part.fused()));
  }
  Widen(chart.rows, chart.low, chart.high);
  return Figure({"Fused / unfused", chart.text.description}, Render(chart), "");
}

Bar ToBar(const ArmView& arm, double value) {
  return {.classes = arm.name == "fused" ? "fused" : "unfused",
          .value = value,
          .interval = {},
          .text = ShortSeconds(arm.seconds),
          .tip = fmt::format("{}: {}", arm.name, ShortSeconds(arm.seconds))};
}

std::string TimesFigure(const ModelView& model) {
  const double unit = model.parts[0].arm("unfused").seconds;
  BarChart chart{.text = {"times-chart", "Times of a run and of its sites", ""},
                 .axis = "time; the unfused run = 1",
                 .groups = {},
                 .band = {}};
  for (const PartView& part : model.parts) {
    BarGroup group{Label(part), "", {}};
    for (const ArmView& arm : part.arms) {
      if (arm.name == "unfused again") continue;
      group.bars.push_back(ToBar(arm, unit > 0 ? arm.seconds / unit : 0));
      chart.text.description += fmt::format(
          "{}, {}: {}. ", Label(part), arm.name, ShortSeconds(arm.seconds));
    }
    chart.groups.push_back(std::move(group));
  }
  return Figure(
      {"Time of a run, and of its sites",
       fmt::format("The sites take {:.2g} % of the unfused run, {} a site on "
                   "average.",
                   100 * model.site_share,
                   ShortSeconds(model.parts[1].arm("unfused").seconds /
                                static_cast<double>(model.sites)))},
      Render(chart), "");
}

std::string MemoryFigure(const ModelView& model) {
  const auto text = [](double bytes) {
    return FormatBytes(static_cast<uint64_t>(bytes));
  };
  const auto bar = [&](const char* name, double bytes) {
    const double unit = model.unfused_peak;
    return Bar{name,
               unit > 0 ? bytes / unit : 0,
               {},
               text(bytes),
               fmt::format("{}: {}", name, text(bytes))};
  };
  const BarChart chart{
      .text = {"memory-chart", "Peak memory of values",
               fmt::format("Unfused {}, fused {}.", text(model.unfused_peak),
                           text(model.fused_peak))},
      .axis = "peak; unfused = 1",
      .groups = {{"unfused", "", {bar("unfused", model.unfused_peak)}},
                 {"fused", "", {bar("fused", model.fused_peak)}}},
      .band = {}};
  return Figure(
      {"Peak memory of values",
       "Of values, the outputs included, without weights and inputs, as “run "
       "--plan” has it; ops that may write over a dying input do, unfused ones "
       "too."},
      Render(chart), "");
}

// Of the arms whose memory was measured.
std::string PeakText(const ModelView& model, std::string_view arm) {
  if (arm == "unfused")
    return FormatBytes(static_cast<uint64_t>(model.unfused_peak));
  if (arm == "fused")
    return FormatBytes(static_cast<uint64_t>(model.fused_peak));
  return "";
}

std::string NumbersTable(const ModelView& model) {
  TableData table{"All arms",
                  "<<>>>>",
                  {"part", "arm", "time", "a site", "/ unfused", "peak memory"},
                  {}};
  for (const PartView& part : model.parts) {
    const bool is_sites = part.what == "sites";
    for (const ArmView& arm : part.arms) {
      table.rows.push_back(
          {Label(part), arm.name, ShortSeconds(arm.seconds),
           is_sites
               ? ShortSeconds(arm.seconds / static_cast<double>(model.sites))
               : "",
           arm.name == "unfused" ? "" : RatioText(arm.against_unfused),
           is_sites ? "" : PeakText(model, arm.name)});
    }
  }
  return Table(table);
}

std::string Facts(const ModelView& model) {
  const std::string name = ir::Printable(model.model);
  std::string text =
      fmt::format("{}: {}, {}", name, Plural(model.sites, "site"),
                  Plural(model.threads, "thread"));
  if (!model.parts.empty())
    text += fmt::format(", {} of {}", Plural(model.parts[0].rounds, "round"),
                        Plural(model.parts[0].calls, "run"));
  if (!model.dims.empty()) text += "; " + model.dims;
  return text + ".";
}

}  // namespace

std::string ModelPage(const Json& report) {
  const ModelView model = ViewModel(report);
  Page page{.title = "What fusing gains in " + model.model,
            .summary = Summarize(model),
            .sections = {},
            .method = kModelMethod};
  if (!model.parts.empty()) {
    page.sections = {{"numbers", "All numbers", NumbersTable(model)}};
    page.summary.points.push_back(UsagePoint({&report.at("usage")}));
    const Json& arms = report.at("cases").at(0).at("arms");
    for (Section& section : OtherSections({{"end to end", &report, &arms}}))
      page.sections.insert(page.sections.end() - 1, std::move(section));
  }
  if (model.sites > 0) {
    page.sections.insert(
        page.sections.begin(),
        {"times", "Times and memory",
         Paragraph(Facts(model)) +
             Paragraph("The band is the noise, what unfused shows against "
                       "itself; what lies within it is not measurable.") +
             Legend(BarKeys()) +
             SideBySide(RatiosFigure(model) + TimesFigure(model) +
                        MemoryFigure(model))});
  }
  return RenderPage(page, report);
}

}  // namespace addnorm::tool::html
