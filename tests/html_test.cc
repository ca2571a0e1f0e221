// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The pieces of HTML pages: what is escaped, where values and ticks lie on an
// axis. Whole pages are looked at in a browser (python/bench_html_test.py).
#include <cmath>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/sandbox.h"
#include "tool/html/charts.h"
#include "tool/html/markup.h"
#include "tool/html/svg.h"

namespace addnorm::tests {
namespace {

using tool::html::Scale;

TEST_CASE("HTML text and attributes are escaped", "[html]") {
  CHECK(tool::html::Escape("<b class='x' id=\"y\">&amp;</b>") ==
        "&lt;b class=&#39;x&#39; id=&quot;y&quot;&gt;&amp;amp;&lt;/b&gt;");
  CHECK(tool::html::Escape("ρ 512×4096") == "ρ 512×4096");
  // Controls and what is no UTF-8 show.
  CHECK(tool::html::Escape("a\x1b\xff") == "a\\x1b\\xff");
}

TEST_CASE("no string in embedded JSON ends its element", "[html]") {
  const nlohmann::ordered_json json{{"name", "</script><!--<script>"}};
  const std::string text = tool::html::InScript(json);
  CHECK(text.find('<') == std::string::npos);
  CHECK(nlohmann::ordered_json::parse(text) == json);
}

TEST_CASE("what is filled into a template is not filled again", "[html]") {
  CHECK(tool::html::Fill("{{a}}-{{b}}{", {{"a", "{{b}}"}, {"b", "2"}}) ==
        "{{b}}-2{");
}

TEST_CASE("table cells are escaped and headings have a scope", "[html]") {
  const std::string table =
      tool::html::Table({"<c>", "<>", {"n", "v"}, {{"<x>", "1"}}});
  CHECK(Contains(table, "<caption>&lt;c&gt;</caption>"));
  CHECK(Contains(table, "<th scope=\"row\">&lt;x&gt;</th>"));
  CHECK(Contains(table, "<td class=\"number\">1</td>"));
}

TEST_CASE("a scale puts values between its ends, others on them", "[html]") {
  const Scale linear{0, 10, 100, 200};
  CHECK(linear.At(2.5) == 125);
  CHECK(linear.At(-1) == 100);
  CHECK(linear.At(11) == 200);
  CHECK(linear.At(std::nan("")) == 100);
  const Scale logarithmic{1, 100, 0, 80, /*is_logarithmic=*/true};
  CHECK(logarithmic.At(10) == Approx(40));
  CHECK(logarithmic.At(0) == 0);
}

TEST_CASE("ticks are round and as close as there is room", "[html]") {
  using Values = std::vector<double>;
  const Scale linear{0, 4.5, 0, 200};
  CHECK(tool::html::Ticks(linear, 40) == Values{0, 1, 2, 3, 4});
  CHECK(tool::html::Ticks(linear, 20) ==
        Values{0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5});
  const Scale logarithmic{0.9, 120, 0, 100, /*is_logarithmic=*/true};
  CHECK(tool::html::Ticks(logarithmic, 30) == Values{1, 10, 100});
}

TEST_CASE("an axis of ratios holds all intervals and 1, within reason",
          "[html]") {
  tool::ArmComparison comparison{.arm = "fused",
                                 .base = "unfused",
                                 .estimate = {.rounds = 9,
                                              .ratio = 0.6,
                                              .sign = {0.5, 0.7},
                                              .bootstrap = {0.4, 0.65}},
                                 .noise = 0.5,
                                 .verdict = runtime::Verdict::kFaster,
                                 .better = {}};
  double low = 1, high = 1;
  tool::html::Widen({{"", comparison}}, low, high);
  CHECK((low < 0.4 && low > 0.3));
  CHECK((high > 1.5 && high < 1.7));
  comparison.estimate.bootstrap = {1e-9, 1e9};
  comparison.noise = 1e9;
  tool::html::Widen({{"", comparison}}, low, high);
  CHECK((low >= 0.1 && high <= 10));
}

}  // namespace
}  // namespace addnorm::tests
