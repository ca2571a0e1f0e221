// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// verify A B: is B exactly A?
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/App.hpp"
#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "proto/text.h"
#include "spdlog/spdlog.h"
#include "tool/commands.h"
#include "tool/fusion.h"
#include "tool/input_options.h"
#include "tool/option_checks.h"
#include "tool/reduce.h"
#include "tool/run_inputs.h"
#include "tool/simd_option.h"
#include "tool/verification.h"
#include "tool/verify_report.h"

namespace addnorm::tool {
namespace {

struct Options {
  std::string a, b;
  std::string inputs;
  std::string reduce;
  uint64_t seed = 0;
  std::vector<std::string> dims;
  std::optional<int> rounds;
  std::optional<int> threads;
  std::string simd;
  std::optional<uint64_t> max_ulps;
  std::optional<double> max_abs;
  bool strict_nan = false;
  bool require_proof = false;
  bool structure_only = false;
};

absl::StatusOr<LoadedModel> LoadPath(const std::string& path) {
  ASSIGN_OR_RETURN(auto file, proto::OpenModelOrText(path));
  return Load(std::move(file));
}

std::string CommandOf(const Options& options) {
  std::string command = fmt::format("onnx-addnorm verify {}", options.a);
  if (!options.b.empty()) command += " " + options.b;
  if (!options.inputs.empty()) command += " --inputs " + options.inputs;
  // With files, 0 is what makes the inputs that have none.
  if (options.inputs.empty() || options.seed != 0)
    command += fmt::format(" --seed {}", options.seed);
  if (options.rounds) command += fmt::format(" --rounds {}", *options.rounds);
  for (const std::string& dim : options.dims) command += " --dim " + dim;
  if (!options.simd.empty()) command += " --simd " + options.simd;
  if (options.max_ulps)
    command += fmt::format(" --max-ulp {}", *options.max_ulps);
  if (options.max_abs)
    command += fmt::format(" --max-abs {}", *options.max_abs);
  if (options.strict_nan) command += " --strict-nan";
  return command;
}

// "--max-ulp 4 and --max-abs 0.1"; "" if no limit is given.
std::string LimitsText(const Options& options) {
  std::string text;
  if (options.max_ulps) text = fmt::format("--max-ulp {}", *options.max_ulps);
  if (options.max_abs) {
    text += fmt::format("{}--max-abs {}", text.empty() ? "" : " and ",
                        *options.max_abs);
  }
  return text;
}

// Differences that the user allows: of numbers, within each limit given.
bool AreAllowed(const Verification& done, const Options& options) {
  runtime::Comparison found = done.difference;
  found.Add(done.apart.difference);
  const auto& differences = done.structure.differences;
  const bool has_limit = options.max_ulps || options.max_abs;
  return has_limit && done.kernels.is_equal() && !done.rounds.empty() &&
         found.mismatch.empty() &&
         (!options.max_ulps || found.max_ulps <= *options.max_ulps) &&
         (!options.max_abs || found.largest.value <= *options.max_abs) &&
         std::none_of(differences.begin(), differences.end(),
                      [](const auto& d) { return d.is_interface; });
}

void Allow(const Options& options, Answer& answer) {
  answer.text +=
      fmt::format("  allowed    by {}: equal within limits is not bit-exact\n",
                  LimitsText(options));
  answer.json["allowed"] = {{"bit_exact", false}};
  if (options.max_ulps) answer.json["allowed"]["max_ulp"] = *options.max_ulps;
  if (options.max_abs) answer.json["allowed"]["max_abs"] = *options.max_abs;
}

// What the verdict is to the caller; the failure says why it is not 0.
void Judge(const Verification& done, const Options& options, Answer& answer) {
  const auto no = [&](std::string error, std::string hint = "") {
    answer.exit_code = ExitCode::kNo;
    answer.failure = Failure{std::move(error), std::move(hint)};
  };
  switch (done.verdict) {
    case Verdict::kDifferent:
      if (AreAllowed(done, options)) {
        Allow(options, answer);
        if (!options.require_proof) return;
        return no("equal within limits is no proof");
      }
      return no(LimitsText(options).empty()
                    ? "the models differ"
                    : fmt::format("the models differ by more than {} allows",
                                  LimitsText(options)));
    case Verdict::kEqualOnRuns:
      if (options.require_proof)
        return no("nothing differs on what was run, but that is no proof");
      break;
    case Verdict::kNotComparable:
      answer.exit_code = ExitCode::kModel;
      answer.failure =
          Failure{"the models cannot be compared",
                  done.run_hint.empty()
                      ? "--structure-only and --inputs DIR leave out what "
                        "cannot be done"
                      : done.run_hint};
      return;
    case Verdict::kProven:
      break;
  }
  if (options.strict_nan && done.has_nan_note())
    no("payloads of NaN may differ, where operands are swapped or as was run");
}

// A difference that cannot be reduced is a difference all the same.
void NoteReduction(const absl::Status& status, const Options& options,
                   Answer& answer) {
  if (!status.ok()) {
    const std::string reason(status.message());
    answer.text += fmt::format("  reduced    no: {}\n", reason);
    answer.json["not_reduced"] = reason;
    return;
  }
  answer.text += fmt::format(
      "  reduced    onnx-addnorm verify {0}/a.onnx {0}/b.onnx --inputs "
      "{0}/test_data_set_0\n",
      ir::Printable(options.reduce));
  answer.json["reduced"] = options.reduce;
}

// What was asked for and not done, though there is a verdict.
void WarnOfRun(const Verification& done, const Options& options,
               Answer& answer) {
  if (options.structure_only || done.verdict == Verdict::kNotComparable) return;
  std::string warning;
  if (done.rounds.empty() && !options.inputs.empty()) {
    warning =
        fmt::format("the given inputs could not be run: {}", done.run_reason);
  } else if (!done.rounds.empty() && !done.has_words()) {
    warning = fmt::format("the run shows nothing: {}", done.run_reason);
  } else {
    return;
  }
  spdlog::warn("{}", warning);
  answer.json["warnings"] = {warning};
}

absl::StatusOr<Answer> Run(const Options& options, const Session& session) {
  ApplySimd(options.simd);
  VerifyRequest request;
  request.inputs.folder = options.inputs;
  request.inputs.seed = options.seed;
  ASSIGN_OR_RETURN(request.inputs.dims, ParseDims(options.dims));
  request.rounds = options.rounds.value_or(request.rounds);
  if (!options.inputs.empty() && request.rounds > 1 && options.rounds) {
    spdlog::warn(
        "--rounds {}: one round is run, as --inputs has the same files "
        "for each",
        *options.rounds);
  }
  request.threads = options.threads.value_or(DefaultThreads());
  request.structure_only = options.structure_only;
  if (!options.reduce.empty())
    RETURN_IF_ERROR(CheckReduceFolder(options.reduce));
  ASSIGN_OR_RETURN(const LoadedModel a, LoadPath(options.a));
  std::optional<LoadedModel> b;
  if (!options.b.empty()) {
    ASSIGN_OR_RETURN(b, LoadPath(options.b));
  }
  ASSIGN_OR_RETURN(const Verification done,
                   Verify(a, b ? &*b : nullptr, request));
  const VerifyNames names{options.a, options.b, CommandOf(options),
                          options.max_ulps.has_value(), session.verbose};
  Answer answer;
  answer.text = ToText(done, names, session.terminal);
  answer.json = ToJson(done, names);
  WarnOfRun(done, options, answer);
  Judge(done, options, answer);
  if (!options.reduce.empty() && done.verdict == Verdict::kDifferent)
    NoteReduction(Reduce(a, b ? *b : a, done, request.inputs, options.reduce),
                  options, answer);
  return answer;
}

constexpr const char* kExamples = R"(Examples:
  onnx-addnorm verify in.onnx out.onnx
  onnx-addnorm verify in.onnx out.onnx --inputs data --require-proof
  onnx-addnorm verify in.onnx other.onnx --reduce failing
  onnx-addnorm verify out.onnx

Structure: the same nodes, attributes and constants, calls of functions inlined.
Kernels: each fused kernel against its body, on ordinary and extreme rows.
Run: both side by side; what they share is computed once.

Verdicts: proven (same structure: equal for all inputs), equal on what was run
(exit 0, with --require-proof 1), different (1), not comparable (3). There is no
tolerance unless --max-ulp or --max-abs gives one: within each limit that is
given, "different" is exit 0, and said to be not bit-exact; with --require-proof
it stays 1.

Runs take as long as the models ask for; Ctrl-C ends them at once.
--structure-only runs nothing.)";

}  // namespace

RunFunction AddVerify(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.footer(kExamples);
  app.add_option("A", options->a, "The original")->required()->option_text(" ");
  app.add_option("B", options->b,
                 "What should be the same; without it, A's fused ops are\n"
                 "compared with their bodies")
      ->option_text(" ");
  AddInputsOption(app, options->inputs);
  app.add_option("--seed", options->seed, "Of generated inputs (default: 0)")
      ->option_text("N")
      ->transform(WholeNumber(0, UINT64_MAX));
  AddDimOption(app, options->dims);
  app.add_option("--rounds", options->rounds,
                 "Runs with other inputs (default: 3): the second in other\n"
                 "sizes, the third on small numbers, where epsilon counts;\n"
                 "with --inputs always 1")
      ->option_text("N")
      ->transform(WholeNumber(1, 1000));
  app.add_option("--threads", options->threads, "Default: all cores")
      ->option_text("N")
      ->transform(WholeNumber(1, kMostThreads));
  AddSimdOption(app, options->simd);
  auto* max_ulp =
      app.add_option(
             "--max-ulp", options->max_ulps,
             "Allow results to differ by so many units in the last place")
          ->option_text("N")
          ->transform(WholeNumber(0, uint64_t{1} << 62));
  auto* max_abs = app.add_option("--max-abs", options->max_abs,
                                 "Allow results to differ by so much")
                      ->option_text("X")
                      ->check(NumberFrom(0));
  app.add_flag("--strict-nan", options->strict_nan,
               "What may change payloads of NaN is a difference: swapped\n"
               "operands of Add or Mul");
  app.add_flag("--require-proof", options->require_proof,
               "Equal on what was run, or within limits, is not enough");
  app.add_option(
         "--reduce", options->reduce,
         "On a difference, write the smallest models that show it, and\n"
         "their inputs, to a new folder")
      ->option_text("DIR")
      ->check(NotEmpty());
  // Limits are of results, and there are none.
  app.add_flag("--structure-only", options->structure_only, "Run nothing")
      ->excludes(max_ulp)
      ->excludes(max_abs);
  return [options](const Session& session) { return Run(*options, session); };
}

}  // namespace addnorm::tool
