// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// patterns: the table of RMSNorm spellings, as text, Markdown or JSON.
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/App.hpp"
#include "fmt/format.h"
#include "passes/rms_norm_variants.h"
#include "tool/commands.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

using passes::VariantRow;
using Json = nlohmann::ordered_json;

struct Options {
  bool text = false;
  bool markdown = false;
};

// The lines of a row's ONNX text without the indentation of the C++ source.
std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    line.erase(0, line.find_first_not_of(" \t"));
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string AsTable(size_t width) {
  Table table("<<<");
  table.AddRow({"spelling", "computes", "tag"});
  for (const VariantRow& row : passes::RmsNormVariants()) {
    table.AddRow({fmt::format("{}.{}", row.rule, row.name),
                  std::string(row.recipe), std::string(row.tag)});
  }
  return table.Render(width);
}

std::string AsText(size_t width) {
  std::string text;
  for (const VariantRow& row : passes::RmsNormVariants()) {
    if (!text.empty()) text += "\n";
    text += fmt::format("{}.{}\n", row.rule, row.name);
    text += Paragraph("  seen in: ", row.seen_in, width);
    for (const std::string& line : Lines(row.text))
      text += fmt::format("  {}\n", line);
  }
  return text;
}

std::string AsMarkdown() {
  std::string text =
      "| rule | spelling | computes | seen in |\n|---|---|---|---|\n";
  for (const VariantRow& row : passes::RmsNormVariants()) {
    text += fmt::format("| {} | {} | `{}` | {} |\n", row.rule, row.name,
                        row.recipe, row.seen_in);
  }
  return text;
}

Json AsJson() {
  Json rows = Json::array();
  for (const VariantRow& row : passes::RmsNormVariants()) {
    rows.push_back(
        {{"rule", row.rule},
         {"name", row.name},
         {"tag", row.tag},
         {"recipe", row.recipe},
         {"seen_in", row.seen_in},
         {"text", fmt::format("{}", fmt::join(Lines(row.text), "\n"))}});
  }
  return Json{{"patterns", std::move(rows)}};
}

absl::StatusOr<Answer> Run(const Options& options, const Session& session) {
  Answer answer;
  answer.json = AsJson();
  answer.text = options.markdown ? AsMarkdown()
                : options.text   ? AsText(session.terminal.width)
                                 : AsTable(session.terminal.width);
  return answer;
}

constexpr const char* kExamples = R"(Examples:
  onnx-addnorm patterns
  onnx-addnorm patterns --text
  onnx-addnorm patterns --markdown > table.md

A spelling of "norm" is put together from spellings of the other rules. Casts,
operand order, absent attributes and the form of constants need no rows.)";

}  // namespace

RunFunction AddPatterns(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.footer(kExamples);
  auto* text = app.add_flag("--text", options->text,
                            "With the ONNX text of each spelling")
                   ->option_text(" ");
  app.add_flag("--markdown", options->markdown, "As a table for a README")
      ->excludes(text)
      ->option_text(" ");
  return [options](const Session& session) { return Run(*options, session); };
}

}  // namespace addnorm::tool
