// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// verify A B: is B exactly A?
#include <memory>
#include <string>

#include "CLI/App.hpp"
#include "fmt/format.h"
#include "passes/ir/status_macros.h"
#include "proto/text.h"
#include "tool/commands.h"
#include "tool/fusion.h"
#include "tool/structure_check.h"

namespace addnorm::tool {
namespace {

struct Options {
  std::string a, b;
};

absl::StatusOr<LoadedModel> LoadPath(const std::string& path) {
  ASSIGN_OR_RETURN(auto file, proto::OpenModelOrText(path));
  return Load(std::move(file));
}

absl::StatusOr<Answer> Run(const Options& options, const Session&) {
  ASSIGN_OR_RETURN(const LoadedModel a, LoadPath(options.a));
  ASSIGN_OR_RETURN(const LoadedModel b, LoadPath(options.b));
  ASSIGN_OR_RETURN(const passes::Structure structure, CheckStructure(a, b));
  Answer answer;
  for (const auto& d : structure.differences)
    answer.text += fmt::format("{} | {}: {}\n", d.place_a, d.place_b, d.text);
  for (const auto& d : structure.swaps)
    answer.text +=
        fmt::format("swap {} | {}: {}\n", d.place_a, d.place_b, d.text);
  answer.text += structure.is_equal() ? "proven\n" : "different\n";
  if (!structure.is_equal()) answer.exit_code = ExitCode::kNo;
  return answer;
}

}  // namespace

RunFunction AddVerify(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("A", options->a, "The original")->required()->option_text(" ");
  app.add_option("B", options->b, "The candidate")
      ->required()
      ->option_text(" ");
  return [options](const Session& session) { return Run(*options, session); };
}

}  // namespace addnorm::tool
