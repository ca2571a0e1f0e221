// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// inspect M: what is in a model, and what optimize would do with it.
#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "CLI/App.hpp"
#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "passes/ir/printer.h"
#include "passes/ir/status_macros.h"
#include "passes/sites.h"
#include "proto/model_file.h"
#include "proto/text.h"
#include "tool/commands.h"
#include "tool/fusion.h"
#include "tool/model_facts.h"
#include "tool/report.h"
#include "tool/site_report.h"

namespace addnorm::tool {
namespace {

struct Options {
  std::string model;
  std::string op;
  bool text = false;
};

using Json = nlohmann::ordered_json;

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

// The domain may be left out: people ask for what they see in a name.
bool IsOp(const ir::Node& node, std::string_view op) {
  return EqualIgnoringCase(OpName(node), op) ||
         EqualIgnoringCase(node.op_type(), op);
}

std::string NodesText(ir::Model& model, const std::string& op) {
  std::string text;
  for (const ir::Graph* graph : model.AllGraphs()) {
    const std::string label = passes::GraphLabel(*graph);
    const std::string where =
        label.empty() ? "" : fmt::format("  # in {}", ir::Printable(label));
    for (const ir::Node& node : graph->nodes()) {
      if (IsOp(node, op)) text += ir::ToText(node) + where + "\n";
    }
  }
  return text;
}

absl::StatusOr<Answer> PrintNodes(ir::Model& model, const Options& options) {
  Answer answer;
  answer.text = NodesText(model, options.op);
  answer.json["text"] = answer.text;
  if (!answer.text.empty()) return answer;
  answer.exit_code = ExitCode::kNo;
  answer.failure = {.error = fmt::format("{}: no node of operator '{}'",
                                         ir::Printable(options.model),
                                         ir::Printable(options.op)),
                    .hint = "inspect without --nodes lists the operators"};
  return answer;
}

absl::StatusOr<Answer> Run(const Options& options, const Session& session) {
  ASSIGN_OR_RETURN(auto file, proto::OpenModelOrText(options.model));
  ASSIGN_OR_RETURN(LoadedModel loaded, Load(std::move(file)));
  if (!options.op.empty()) return PrintNodes(*loaded.model, options);
  Answer answer;
  if (options.text) {
    answer.text = ir::ToText(*loaded.model);
    answer.json["text"] = answer.text;
    return answer;
  }
  const ModelFacts facts = GatherFacts(*loaded.model);
  ASSIGN_OR_RETURN(const passes::FusionReport report, Fuse(loaded));
  answer.text = ToText(facts, session.terminal) + "\n" +
                SummarizeSites(report, "can fuse", /*with_reasons=*/false,
                               session.terminal) +
                "\n" + ExplainSites(report, "can be fused", session.terminal);
  answer.json = ToJson(facts);
  answer.json.update(SitesToJson(report));
  return answer;
}

constexpr const char* kExamples = R"(Examples:
  onnx-addnorm inspect model.onnx
  onnx-addnorm inspect model.onnx --nodes Sqrt
  onnx-addnorm inspect model.onnx --text | less)";

}  // namespace

RunFunction AddInspect(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.footer(kExamples);
  app.add_option("MODEL", options->model,
                 "A model, or one in ONNX text; '-' is standard input")
      ->required()
      ->option_text(" ");
  auto* nodes = app.add_option("--nodes", options->op,
                               "Print the nodes of one operator, in any case")
                    ->option_text("OP");
  app.add_flag("--text", options->text,
               "Print the whole model in the style of ONNX text")
      ->excludes(nodes)
      ->option_text(" ");
  return [options](const Session& session) { return Run(*options, session); };
}

}  // namespace addnorm::tool
