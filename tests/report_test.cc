// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What commands print, made from data instead of models.
#include "tool/report.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "passes/fusion_report.h"
#include "passes/ir/printable.h"
#include "tests/support/catch.h"
#include "tool/exit_code.h"
#include "tool/optimize_report.h"
#include "tool/output.h"
#include "tool/progress.h"
#include "tool/site_report.h"
#include "tool/term.h"

namespace addnorm::tool {
namespace {

using passes::Candidate;
using passes::FusionReport;
using passes::Verdict;

constexpr Terminal kPlain{.color = false, .color_errors = false, .width = 80};

Candidate Fused(std::string node, std::string variant) {
  Candidate candidate;
  candidate.verdict = Verdict::kFused;
  candidate.node = std::move(node);
  candidate.sum = "s";
  candidate.y = "y";
  candidate.op = "AddRmsNorm_" + variant;
  candidate.variant = std::move(variant);
  return candidate;
}

Candidate NotFused(std::string node, std::string reason,
                   std::string hint = "") {
  Candidate candidate;
  candidate.verdict = Verdict::kNotFused;
  candidate.node = std::move(node);
  candidate.reason = std::move(reason);
  candidate.hint = std::move(hint);
  return candidate;
}

Candidate Other(Verdict verdict, std::string node, std::string op = "") {
  Candidate candidate;
  candidate.verdict = verdict;
  candidate.node = std::move(node);
  candidate.op = std::move(op);
  return candidate;
}

OptimizeResult SomeResult() {
  OptimizeResult result;
  result.input = "in.onnx";
  result.output = "out.onnx";
  result.is_written = true;
  result.target = "portable";
  result.input_bytes = 2048;
  result.output_bytes = 1000;
  result.before = {{"Add", 49}, {"MatMul", 7}, {"Sqrt", 1}};
  result.after = {{"Add", 25}, {"MatMul", 7}, {"ai.addnorm.AddRmsNorm", 24}};
  result.report.candidates = {Fused("Add 'a'", "div")};
  result.wall_seconds = 0.0123;
  result.cpu_seconds = 1.5;
  return result;
}

}  // namespace

TEST_CASE("progress of a run counts nodes", "[report]") {
  CHECK(NodeProgressText(0, 412, 0.6) == "node 1 of 412 (0 %)");
  CHECK(NodeProgressText(119, 412, 1) == "node 120 of 412 (28 %), 3 s left");
}

TEST_CASE("a table aligns text to the left and numbers to the right",
          "[tool]") {
  Table table("<>");
  table.AddRow({"Add", "9"});
  table.AddRow({"größer", "10"});
  table.AddRow({"", ""});
  CHECK(table.Render(80) == "Add      9\ngrößer  10\n\n");
}

TEST_CASE("a table that is too wide is cut in its first column", "[tool]") {
  Table table("<>");
  table.AddRow({"ai.addnorm.AddRmsNorm_reciprocal_f32", "12"});
  CHECK(table.Render(20) == "ai.addnorm.AddR…  12\n");
  CHECK(table.Render(5) == "ai.addnorm.…  12\n");
}

TEST_CASE("shortening counts code points, not bytes", "[tool]") {
  CHECK(Shorten("äöü", 3) == "äöü");
  CHECK(Shorten("äöüß", 3) == "äö…");
  CHECK(Columns("äöü…") == 4);
}

TEST_CASE("a paragraph breaks at spaces and keeps long words whole", "[tool]") {
  CHECK(Paragraph("- ", "one two three", 9) == "- one two\n  three\n");
  CHECK(Paragraph("  ", "aaaaaaaaaaaaaaaa b", 9) ==
        "  aaaaaaaaaaaaaaaa\n  b\n");
  CHECK(Paragraph("", "", 9) == "\n");
}

TEST_CASE("sizes, times and counts read well", "[tool]") {
  CHECK(FormatBytes(0) == "0 bytes");
  CHECK(FormatBytes(1) == "1 byte");
  CHECK(FormatBytes(999) == "999 bytes");
  CHECK(FormatBytes(1000) == "1.0 kB");
  CHECK(FormatBytes(999'949) == "999.9 kB");
  CHECK(FormatBytes(999'950) == "1.0 MB");
  CHECK(FormatBytes(UINT64_MAX) == "18.4 EB");
  CHECK(FormatSeconds(0.00321) == "3.2 ms");
  CHECK(FormatSeconds(1.25) == "1.25 s");
  CHECK(Plural(1, "site") == "1 site");
  CHECK(Plural(0, "site") == "0 sites");
}

TEST_CASE("progress is told in bytes, percent and time left", "[tool]") {
  CHECK(ProgressText(0, 4000, 0.5) == "0 bytes of 4.0 kB (0 %)");
  CHECK(ProgressText(1000, 4000, 2) == "1.0 kB of 4.0 kB (25 %), 6 s left");
  CHECK(ProgressText(9, 1000, 1) == "9 bytes of 1.0 kB (0 %)");
  CHECK(ProgressText(10, 1000, 2) == "10 bytes of 1.0 kB (1 %), 4 min left");
  CHECK(ProgressText(3999, 4000, 9) == "4.0 kB of 4.0 kB (99 %), 1 s left");
  CHECK(ProgressText(4000, 4000, 9) ==
        "4.0 kB of 4.0 kB (100 %), waiting for the disk");
}

TEST_CASE("names are printed without what a terminal would obey", "[tool]") {
  struct Row {
    std::string_view name, printed;
  };
  const Row rows[] = {
      {"/l.0/Add", "/l.0/Add"},
      {"模型 🙂 ä", "模型 🙂 ä"},
      {"a\x1b[31mb", "a\\x1b[31mb"},
      {"a\nb\tc\rd", "a\\nb\\tc\\rd"},
      {"\x7f", "\\x7f"},
      {"\xc2\x9b", "\\u{9b}"},        // a C1 control: starts an escape sequence
      {"\xe2\x80\xae", "\\u{202e}"},  // right-to-left override
      {"\xff\xfe", "\\xff\\xfe"},
      {"\xc3", "\\xc3"},           // cut off
      {"\xc0\xaf", "\\xc0\\xaf"},  // overlong
      {"\xe0\x80\x80", "\\xe0\\x80\\x80"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
  };
  for (const Row& row : rows) CHECK(ir::Printable(row.name) == row.printed);
  CHECK(ir::Printable("a\nb", /*keep_lines=*/true) == "a\nb");
}

TEST_CASE(
    "the summary counts sites and names the variants, most frequent first",
    "[tool]") {
  FusionReport report;
  report.candidates = {Fused("Add 'a'", "div"), Fused("Add 'b'", "mul"),
                       Fused("Add 'c'", "mul"),
                       NotFused("Add 'd'", "the mean is over axis 1")};
  CHECK(SummarizeSites(report, "fused", true, kPlain) ==
        "fused 3 of 4 sites (mul 2, div 1)\n"
        "not fused:\n"
        "  Add 'd': the mean is over axis 1\n");
  CHECK(SummarizeSites(report, "can fuse", false, kPlain) ==
        "can fuse 3 of 4 sites (mul 2, div 1)\n");
}

TEST_CASE("the summary shows five reasons and says how many more there are",
          "[tool]") {
  FusionReport report;
  for (int i = 0; i < 7; ++i)
    report.candidates.push_back(NotFused("Add", "no " + std::to_string(i)));
  const std::string text = SummarizeSites(report, "fused", true, kPlain);
  CHECK(text.find("fused 0 of 7 sites\n") == 0);
  CHECK(text.find("… and 2 more (--explain)\n") != std::string::npos);
}

TEST_CASE("the summary counts a reason that many sites have, names apart",
          "[tool]") {
  FusionReport report;
  report.candidates = {NotFused("Add 'x'", "'y' is read by Relu 'z' too")};
  for (const std::string layer : {"0", "1", "2"})
    report.candidates.push_back(NotFused(
        "Add 's" + layer + "'", "Pow 'p" + layer + "': 'e' is 3, expected 2"));
  CHECK(SummarizeSites(report, "fused", true, kPlain) ==
        "fused 0 of 4 sites\n"
        "not fused:\n"
        "  3 x Pow 'p0': 'e' is 3, expected 2 (first: Add 's0')\n"
        "  Add 'x': 'y' is read by Relu 'z' too\n");
}

TEST_CASE("the summary tells norms that are no sites apart", "[tool]") {
  FusionReport report;
  report.candidates = {
      Other(Verdict::kNoAdd, "Mul 'm'"),
      Other(Verdict::kAlreadyFused, "x", "SkipSimplifiedLayerNormalization")};
  report.layer_norms = 2;
  CHECK(SummarizeSites(report, "fused", true, kPlain) ==
        "no sites: no residual Add feeds an RMSNorm that is recognised\n"
        "already fused: 1 (SkipSimplifiedLayerNormalization 1)\n"
        "without a residual Add: 1 norm\n"
        "2 LayerNorms (the mean is subtracted): out of scope, left alone\n");
}

TEST_CASE("each candidate is explained with its place, reason and hint",
          "[tool]") {
  FusionReport report;
  report.candidates = {
      Fused("Add 'a\x1b'", "div"),
      NotFused("Add 'b'", "exponent is 3, expected 2", "none")};
  report.candidates.back().graph = "function 'my::Block'";
  CHECK(ExplainSites(report, "fused", kPlain) ==
        "fused            Add 'a\\x1b'\n"
        "                 as AddRmsNorm_div\n"
        "not fused        Add 'b' in function 'my::Block'\n"
        "                 exponent is 3, expected 2\n"
        "                 hint: none\n");
  CHECK(ExplainSites(report, "can be fused", kPlain)
            .starts_with("can be fused     Add 'a\\x1b'\n"));
}

TEST_CASE("sites as JSON have counts and only the fields that are known",
          "[tool]") {
  FusionReport report;
  report.candidates = {Fused("Add 'a'", "div"), NotFused("Add 'b'", "no")};
  const nlohmann::ordered_json json = SitesToJson(report);
  CHECK(json["fused"] == 1);
  CHECK(json["not_fused"] == 1);
  CHECK(json["variants"]["div"] == 1);
  CHECK(json["sites"][0]["op"] == "AddRmsNorm_div");
  CHECK(json["sites"][1]["verdict"] == "not fused");
  CHECK_FALSE(json["sites"][1].contains("op"));
}

TEST_CASE("the summary of optimize lists changed operators only, and the total",
          "[tool]") {
  const std::string text = ToText(SomeResult(), /*explain=*/false, kPlain);
  CHECK(text ==
        "                       before  after\n"
        "Add                        49     25  -24\n"
        "Sqrt                        1      0   -1\n"
        "ai.addnorm.AddRmsNorm       0     24  +24\n"
        "nodes                      57     56   -1\n"
        "\n"
        "fused 1 of 1 site (div 1)\n"
        "in.onnx (2.0 kB) -> out.onnx (1.0 kB)\n"
        "time: 12.3 ms (1.50 s of CPU)\n");
}

TEST_CASE("the summary of optimize mentions notes and external data",
          "[tool]") {
  OptimizeResult result = SomeResult();
  result.report.notes = {"ir_version raised from 7 to 8"};
  result.data_files = {{"w.bin", 32, DataPlace::kShared},
                       {"v.bin", 1, DataPlace::kCopied},
                       {"u.bin", 2, DataPlace::kPresent},
                       {"t.bin", 3, DataPlace::kUnknown}};
  const std::string text = ToText(result, false, kPlain);
  CHECK(text.find("note: ir_version raised from 7 to 8\n") !=
        std::string::npos);
  CHECK(text.find("external data: w.bin (32 bytes), shared\n") !=
        std::string::npos);
  CHECK(text.find("external data: v.bin (1 byte), copied\n"
                  "external data: u.bin (2 bytes), the same is there already\n"
                  "external data: t.bin (3 bytes)\n") != std::string::npos);
}

TEST_CASE("the summary of optimize says when nothing was fused or written",
          "[tool]") {
  OptimizeResult result = SomeResult();
  result.report.candidates.clear();
  CHECK(
      ToText(result, false, kPlain).find("(1.0 kB, a copy byte for byte)\n") !=
      std::string::npos);
  result.is_written = false;
  CHECK(ToText(result, false, kPlain)
            .find("in.onnx (2.0 kB): nothing was written, the output would "
                  "have 1.0 kB\n") != std::string::npos);
}

TEST_CASE("a hint in a status becomes a part of its own", "[tool]") {
  const Failure failure =
      ToFailure(absl::NotFoundError("m\x1b: is empty\nhint: try\nagain"));
  CHECK(failure.error == "m\\x1b: is empty");
  CHECK(failure.hint == "try\\nagain");
  CHECK(ToFailure(absl::NotFoundError("gone")).hint.empty());
}

TEST_CASE("JSON survives names that are no UTF-8", "[tool]") {
  CHECK(Dump({{"name", "a\xff"}}) == "{\n  \"name\": \"a\xef\xbf\xbd\"\n}");
}

TEST_CASE("every kind of failure has its exit code", "[tool]") {
  CHECK(ToExitCode(absl::StatusCode::kOk) == ExitCode::kDone);
  CHECK(ToExitCode(absl::StatusCode::kFailedPrecondition) == ExitCode::kUsage);
  CHECK(ToExitCode(absl::StatusCode::kInvalidArgument) == ExitCode::kModel);
  CHECK(ToExitCode(absl::StatusCode::kUnimplemented) == ExitCode::kModel);
  CHECK(ToExitCode(absl::StatusCode::kNotFound) == ExitCode::kSystem);
  CHECK(ToExitCode(absl::StatusCode::kResourceExhausted) == ExitCode::kSystem);
  CHECK(ToExitCode(absl::StatusCode::kCancelled) == ExitCode::kInterrupted);
  CHECK(ToExitCode(absl::StatusCode::kInternal) == ExitCode::kBug);
  CHECK(ToExitCode(absl::StatusCode::kUnknown) == ExitCode::kBug);
}

TEST_CASE("colour is a matter of the terminal, never of the text", "[tool]") {
  constexpr Terminal kColored{
      .color = true, .color_errors = false, .width = 80};
  CHECK(kColored.Paint(Style::kGood, "fused") == "\x1b[32mfused\x1b[0m");
  CHECK(kColored.PaintError(Style::kBad, "error:") == "error:");
  CHECK(kPlain.Paint(Style::kStrong, "x") == "x");
}

}  // namespace addnorm::tool
