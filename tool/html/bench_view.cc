// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/html/bench_view.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/check.h"
#include "tool/report.h"

namespace addnorm::tool::html {
namespace {

constexpr const char* kNoBreak = "\u00a0";  // a space that ends no line

ArmView ToArm(const Json& json) {
  ArmView arm;
  arm.name = json.at("name").get<std::string>();
  arm.seconds = json.at("median_seconds").get<double>();
  arm.against_unfused = ToEstimate(json.at("against_unfused"));
  arm.is_probe = json.value("is_probe", false);
  arm.bytes = json.value("modelled_bytes", 0.0);
  arm.bandwidth = json.value("bytes_per_second", 0.0);
  arm.share_of_best = json.value("share_of_best_probe", 0.0);
  if (const auto found = json.find("comparison"); found != json.end())
    arm.comparison = ToComparison(arm.name, *found);
  return arm;
}

std::vector<ArmView> ToArms(const Json& json) {
  std::vector<ArmView> arms;
  for (const Json& arm : json.at("arms")) arms.push_back(ToArm(arm));
  return arms;
}

std::vector<std::string> NotAsModelled(const Json& json) {
  std::vector<std::string> found;
  for (const Json& row : json.at("not_as_modelled")) {
    found.push_back(fmt::format("{} is slower than {}",
                                row.at("arm").get<std::string>(),
                                row.at("base").get<std::string>()));
  }
  return found;
}

KernelView ToKernel(const Json& json) {
  const auto text = [&](const char* key) {
    return json.at(key).get<std::string>();
  };
  const auto number = [&](const char* key) {
    return json.at(key).get<int64_t>();
  };
  return {.recipe = text("recipe"),
          .type = text("type"),
          .cache = text("cache"),
          .clock = text("clock"),
          .rows = number("rows"),
          .length = number("length"),
          .threads = number("threads"),
          .rounds = number("rounds"),
          .calls = number("calls_per_epoch"),
          .tensor_bytes = json.at("tensor_bytes").get<double>(),
          .noise = json.at("noise_floor").get<double>(),
          .limit = text("limit"),
          .limiter = text("limiter"),
          .not_as_modelled = NotAsModelled(json),
          .arms = ToArms(json)};
}

PartView ToPart(const Json& json) {
  return {.what = json.at("what").get<std::string>(),
          .rounds = json.at("rounds").get<int64_t>(),
          .calls = json.at("calls_per_epoch").get<int64_t>(),
          .noise = json.at("noise_floor").get<double>(),
          .arms = ToArms(json)};
}

const ArmView& Find(const std::vector<ArmView>& arms, std::string_view name) {
  const auto found =
      std::find_if(arms.begin(), arms.end(),
                   [&](const ArmView& arm) { return arm.name == name; });
  ADDNORM_CHECK(found != arms.end(), "no such arm");
  return *found;
}

const ArmComparison& ComparisonOf(const ArmView& arm) {
  ADDNORM_CHECK(arm.comparison.has_value(), "an arm without a comparison");
  return *arm.comparison;
}

}  // namespace

const ArmView& KernelView::arm(std::string_view wanted) const {
  return Find(arms, wanted);
}

const ArmComparison& KernelView::comparison(std::string_view wanted) const {
  return ComparisonOf(arm(wanted));
}

std::string KernelView::shape() const {
  return fmt::format("{}×{}", rows, length);
}

std::string KernelView::name() const {
  return fmt::format("{0}{3}{1}{3}{2}", type, shape(), cache, kNoBreak);
}

std::string KernelView::group() const {
  return fmt::format("{}, {} caches, {}, {}", type,
                     cache == "producer" ? "producer’s" : cache, recipe,
                     Plural(threads, "thread"));
}

std::vector<KernelView> KernelViews(const Json& report) {
  std::vector<KernelView> views;
  for (const Json& json : report.at("cases")) views.push_back(ToKernel(json));
  return views;
}

const ArmView& PartView::arm(std::string_view wanted) const {
  return Find(arms, wanted);
}

const ArmComparison& PartView::fused() const {
  return ComparisonOf(arm("fused"));
}

ModelView ViewModel(const Json& report) {
  ModelView view{.model = report.at("model").get<std::string>(),
                 .sites = report.at("sites").get<int64_t>(),
                 .fused_before = report.at("sites_fused_before").get<int64_t>(),
                 .threads = report.at("threads").get<int64_t>(),
                 .dims = {},
                 .headline = report.at("headline").get<std::string>(),
                 .parts = {}};
  for (const Json& dim : report.at("dims"))
    view.dims += fmt::format("{}{}={}", view.dims.empty() ? "" : ", ",
                             dim.at("symbol").get<std::string>(),
                             dim.at("value").get<int64_t>());
  for (const Json& part : report.at("cases"))
    view.parts.push_back(ToPart(part));
  if (!view.parts.empty())
    view.unfused_peak = report.at("unfused_peak_bytes").get<double>();
  if (view.sites == 0) return view;
  view.has_same_bits = report.at("has_same_bits").get<bool>();
  view.site_share = report.at("site_share").get<double>();
  view.fused_peak = report.at("fused_peak_bytes").get<double>();
  return view;
}

}  // namespace addnorm::tool::html
