// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// inspect M: what is in a model, and what optimize would do with it.
#include <memory>
#include <string>
#include <utility>

#include "CLI/App.hpp"
#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "passes/ir/printer.h"
#include "proto/model_file.h"
#include "proto/status_macros.h"
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

std::string NodesText(ir::Model& model, const std::string& op) {
  std::string text;
  for (const ir::Graph* graph : model.AllGraphs()) {
    for (const ir::Node& node : graph->nodes()) {
      if (OpName(node) != op) continue;
      text += ir::Printable(ir::ToText(node), /*keep_lines=*/true) + "\n";
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
    answer.text = ir::Printable(ir::ToText(*loaded.model), /*keep_lines=*/true);
    answer.json["text"] = answer.text;
    return answer;
  }
  const ModelFacts facts = GatherFacts(*loaded.model);
  ASSIGN_OR_RETURN(const passes::FusionReport report, Fuse(loaded));
  answer.text = ToText(facts, session.terminal) + "\n" +
                SummarizeSites(report, "can fuse", /*with_reasons=*/false,
                               session.terminal) +
                "\n" + ExplainSites(report, session.terminal);
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
  auto* nodes =
      app.add_option("--nodes", options->op, "Print the nodes of one operator")
          ->option_text("OP");
  app.add_flag("--text", options->text,
               "Print the whole model in the style of ONNX text")
      ->excludes(nodes)
      ->option_text(" ");
  return [options](const Session& session) { return Run(*options, session); };
}

}  // namespace addnorm::tool
