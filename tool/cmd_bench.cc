// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// bench M, bench --kernel: what fusing gains on this machine, in a model and by
// itself.
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
#include "proto/file_output.h"
#include "proto/text.h"
#include "tool/arithmetic_roof.h"
#include "tool/bench_kernel.h"
#include "tool/bench_kernel_report.h"
#include "tool/bench_model.h"
#include "tool/bench_model_report.h"
#include "tool/bench_restarts.h"
#include "tool/bench_sweep.h"
#include "tool/commands.h"
#include "tool/html/page.h"
#include "tool/input_options.h"
#include "tool/onnx_runtime.h"
#include "tool/option_checks.h"
#include "tool/output.h"
#include "tool/progress.h"
#include "tool/report.h"
#include "tool/run_inputs.h"
#include "tool/simd_option.h"

namespace addnorm::tool {
namespace {

struct Options {
  std::string model;
  std::string inputs;
  std::vector<std::string> dims;
  int restarts = 1;
  bool kernel = false;
  bool quick = false;
  std::vector<std::string> recipes, types, shapes, caches;
  std::vector<int> threads;
  std::string simd;
  std::optional<double> seconds;
  uint64_t seed = 0;
  std::vector<std::string> against;
  std::string ort;
  bool no_pin = false;
  std::string html;  // "" for none
  bool force = false;
};

// Rounds that are made even if they take longer than the default time.
constexpr size_t kLeastRounds = 11;
constexpr double kSecondsOfCase = 1;
constexpr double kQuickSecondsOfCase = 0.25;
constexpr double kSecondsOfModel = 10;

using Words = std::vector<std::string>;

Words Or(const Words& given, Words otherwise) {
  return given.empty() ? std::move(otherwise) : given;
}

constexpr std::string_view kOrtWord = "ort";

// ONNX Runtime if it was asked for, else nullptr.
absl::StatusOr<std::unique_ptr<OnnxRuntime>> OpenOrt(const Options& options) {
  const bool is_asked =
      std::find(options.against.begin(), options.against.end(), kOrtWord) !=
      options.against.end();
  if (!is_asked && options.ort.empty()) return nullptr;
  return OnnxRuntime::Open(options.ort);
}

// What it was has to be known, to judge times.
void Note(const OnnxRuntime* ort, MachineFacts& machine) {
  if (ort != nullptr) machine.ort = ort->version();
}

absl::StatusOr<KernelSweep> SweepOf(const Options& options) {
  KernelSweep sweep;
  const bool quick = options.quick;
  ASSIGN_OR_RETURN(sweep.recipes,
                   ParseRecipes(Or(options.recipes, {"reciprocal"})));
  ASSIGN_OR_RETURN(sweep.types,
                   ParseTypes(Or(options.types,
                                 quick ? Words{"f32"} : Words{"f32", "f16"})));
  ASSIGN_OR_RETURN(
      sweep.shapes,
      ParseShapes(
          Or(options.shapes, quick ? Words{"1x4096", "512x4096"}
                                   : Words{"1x4096", "32x4096", "512x4096"})));
  ASSIGN_OR_RETURN(
      sweep.caches,
      ParseCaches(
          Or(options.caches, quick ? Words{"cold"} : Words{"warm", "cold"})));
  sweep.threads = options.threads.empty() ? std::vector<int>{DefaultThreads()}
                                          : options.threads;
  sweep.seconds =
      options.seconds.value_or(quick ? kQuickSecondsOfCase : kSecondsOfCase);
  sweep.least_rounds = options.seconds ? 1 : kLeastRounds;
  sweep.seed = options.seed;
  sweep.pins = !options.no_pin;
  return sweep;
}

// Of thousandths, so that a case in progress shows.
std::string CaseProgressText(uint64_t done, uint64_t total, double seconds) {
  const double share = static_cast<double>(done) /
                       static_cast<double>(std::max<uint64_t>(total, 1));
  std::string text = fmt::format("measuring: {:.0f} %", 100 * share);
  if (share > 0.05)
    text += fmt::format(", {:.0f} s left", seconds * (1 - share) / share);
  return text;
}

// Early: what is refused after minutes of measuring helps nobody.
absl::Status CheckPage(const Options& options, const proto::ModelFile* model) {
  if (options.html.empty()) return absl::OkStatus();
  return proto::CheckReportTarget(options.html, options.force, model);
}

// The report as a page, if it is asked for; then it is part of the answer.
absl::Status WritePage(const Options& options, const proto::ModelFile* model,
                       std::string (*to_page)(const nlohmann::ordered_json&),
                       Answer& answer) {
  if (options.html.empty()) return absl::OkStatus();
  nlohmann::ordered_json report{{"schema", SchemaOf("bench")}};
  report.update(answer.json);
  const std::string page = to_page(report);
  RETURN_IF_ERROR(proto::WriteReport(page, options.html, options.force, model));
  answer.stdout_is_taken = options.html == "-";
  answer.text += fmt::format(
      "\npage: {} ({})\n",
      options.html == "-" ? "<stdout>" : ir::Printable(options.html),
      FormatBytes(page.size()));
  return absl::OkStatus();
}

absl::StatusOr<Answer> RunKernels(const Options& options,
                                  const Session& session) {
  ASSIGN_OR_RETURN(KernelSweep sweep, SweepOf(options));
  RETURN_IF_ERROR(CheckPage(options, nullptr));
  ASSIGN_OR_RETURN(const auto ort, OpenOrt(options));
  sweep.ort = ort.get();
  MachineFacts machine = GatherMachineFacts();
  Note(ort.get(), machine);
  Progress progress(session.terminal.shows_progress, CaseProgressText);
  sweep.on_progress = [&](double done, size_t total) {
    progress.Update(static_cast<uint64_t>(done * 1000), total * 1000);
  };
  ASSIGN_OR_RETURN(std::vector<KernelCase> cases, BenchKernels(sweep));
  progress.Erase();
  std::vector<BenchCase*> times;
  for (KernelCase& result : cases) times.push_back(&result.times);
  RETURN_IF_ERROR(AddRestarts(options.restarts - 1, times));
  Answer answer;
  answer.text = ToText(cases, machine, session.terminal);
  answer.json = ToJson(cases, machine);
  answer.json["arithmetic"] = MeasureArithmetic(sweep.threads);
  RETURN_IF_ERROR(WritePage(options, nullptr, html::KernelPage, answer));
  return answer;
}

absl::StatusOr<Answer> RunModel(const Options& options,
                                const Session& session) {
  ModelBenchRequest request;
  request.inputs = {.folder = options.inputs, .seed = options.seed};
  ASSIGN_OR_RETURN(request.inputs.dims, ParseDims(options.dims));
  request.threads =
      options.threads.empty() ? DefaultThreads() : options.threads[0];
  request.seconds =
      options.seconds.value_or(options.quick ? 1 : kSecondsOfModel);
  request.least_rounds = options.seconds ? 1 : kLeastRounds;
  request.pins = !options.no_pin;
  ASSIGN_OR_RETURN(const auto ort, OpenOrt(options));
  request.against.ort = ort.get();
  for (const std::string& path : options.against) {
    if (path == kOrtWord) continue;
    ASSIGN_OR_RETURN(request.against.files.emplace_back(),
                     proto::OpenModelOrText(path));
  }
  MachineFacts machine = GatherMachineFacts();
  Note(ort.get(), machine);
  Progress progress(session.terminal.shows_progress, CaseProgressText);
  request.on_progress = [&](double share) {
    progress.Update(static_cast<uint64_t>(share * 1000), 1000);
  };
  ASSIGN_OR_RETURN(const auto file, proto::OpenModelOrText(options.model));
  RETURN_IF_ERROR(CheckPage(options, file.get()));
  for (const auto& other : request.against.files)
    RETURN_IF_ERROR(CheckPage(options, other.get()));
  ASSIGN_OR_RETURN(ModelBench bench, BenchModel(file, request));
  progress.Erase();
  if (bench.is_measured)
    RETURN_IF_ERROR(AddRestarts(options.restarts - 1, bench.cases()));
  Answer answer;
  answer.text = ToText(bench, machine, session.terminal);
  answer.json = ToJson(bench, machine);
  RETURN_IF_ERROR(WritePage(options, file.get(), html::ModelPage, answer));
  if (bench.is_measured && bench.sites > 0 && !bench.has_same_bits) {
    answer.exit_code = ExitCode::kNo;
    answer.failure = Failure{"the fused model gives other bits",
                             "'onnx-addnorm verify' says where"};
  }
  return answer;
}

// What does not go together; the first that is broken is told.
absl::Status CheckOptions(const Options& options, bool json) {
  const auto& against = options.against;
  const bool reads_stdin =
      options.model == "-" ||
      std::find(against.begin(), against.end(), "-") != against.end();
  const bool has_other_model =
      std::any_of(against.begin(), against.end(),
                  [](const std::string& word) { return word != kOrtWord; });
  const bool has_sweep = !options.recipes.empty() || !options.types.empty() ||
                         !options.shapes.empty() || !options.caches.empty();
  const struct {
    bool is_broken;
    const char* what;
  } rules[] = {
      {options.html == "-" && json,
       "--html - and --json both need standard output"},
      {options.force && options.html.empty(),
       "--force is for the file of --html"},
      {options.kernel && !options.model.empty(),
       "--kernel measures the pair by itself, without a MODEL"},
      {options.kernel && (!options.inputs.empty() || !options.dims.empty()),
       "--inputs and --dim are for a MODEL, not for --kernel"},
      {options.kernel && has_other_model,
       "--against: --kernel compares with 'ort', not with a model"},
      {!options.kernel && options.model.empty(),
       "what is to be measured?\nhint: give a MODEL, or --kernel for the pair "
       "by itself"},
      {!options.kernel && has_sweep,
       "--recipes, --types, --shapes and --caches are for --kernel"},
      {!options.kernel && options.threads.size() > 1,
       "--threads: a list is for --kernel; a MODEL takes one"},
      {options.restarts > 1 && reads_stdin,
       "--restarts: standard input cannot be read again"}};
  for (const auto& rule : rules) {
    if (rule.is_broken) return absl::FailedPreconditionError(rule.what);
  }
  return absl::OkStatus();
}

absl::StatusOr<Answer> Run(const Options& options, const Session& session) {
  RETURN_IF_ERROR(CheckOptions(options, session.json));
  ApplySimd(options.simd);
  return options.kernel ? RunKernels(options, session)
                        : RunModel(options, session);
}

constexpr const char* kExamples = R"(Examples:
  onnx-addnorm bench model.onnx --dim sequence=128
  onnx-addnorm bench --kernel --quick
  onnx-addnorm bench --kernel --types f32,bf16 --shapes 1x4096,512x5120
  onnx-addnorm bench --kernel --shapes models --threads 1,2 --json
  onnx-addnorm bench model.onnx --against other.onnx --against ort
  onnx-addnorm bench --kernel --shapes cliff --caches warm --html caches.html

All arms run in one process, one epoch of each in each round, in an order drawn for
each round; ratios are medians of those of single rounds, with 95 % intervals (the
wider of a sign test's and a block bootstrap's). A verdict needs one without 1 in
it, and a ratio beyond what an arm shows against itself; streaming is of no use
where fused with plain stores is faster. "model" is the memory traffic by the model,
cache lines that stores read first included; "of best" is the share of the best of
four probes (read, copy, streaming copy, add): above 100 % where an arm in place
writes lines that it has just read, or where warm caches serve it better.

A MODEL without sites is measured only beside others (exit 0). Peak memory is that
of 'run': of values, the outputs included, without weights and inputs.

"ort" is ONNX Runtime, in this process, with its default optimisations and as many
threads: the model as it is, fused, and with its own fused op (optimize --target
ort); of --kernel, the pair as a model. Another MODEL must have the same inputs and
outputs.

Recipes: reciprocal x * (1 / rms) * w, as Llama; divide x / rms * w, as
RMSNormalization; late: rounded once, after w. Caches: warm, cold (buffers in
turn), producer (b just written, a cold). Shapes: ROWSxLENGTH; 'models': 1, 32,
512, 2048 rows of 2048, 3072, 4096, 5120, 8192; 'cliff': rows of 1024, from what
the first-level cache holds to twice the last one.)";

}  // namespace

RunFunction AddBench(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.footer(kExamples);
  app.add_option("MODEL", options->model,
                 "Measured as it is against fused in memory")
      ->option_text(" ");
  app.add_flag("--kernel", options->kernel,
               "Measure the pair by itself, without a model");
  app.add_flag("--quick", options->quick, "Fewer cases, for less time each");
  const auto add_list = [&](const char* name, auto& value, const char* what) {
    app.add_option(name, value, what)->option_text("LIST")->delimiter(',');
  };
  add_list("--recipes", options->recipes,
           "reciprocal, divide, late (default: reciprocal)");
  add_list("--types", options->types, "f32, f16, bf16, f64 (default: f32,f16)");
  add_list("--shapes", options->shapes,
           "ROWSxLENGTH, models or cliff (default:\n1x4096,32x4096,512x4096)");
  add_list("--caches", options->caches,
           "warm, cold, producer (default: warm,cold)");
  app.add_option("--threads", options->threads,
                 "Numbers of threads (default: all cores)")
      ->option_text("LIST")
      ->delimiter(',')
      ->transform(WholeNumber(1, kMostThreads));
  AddSimdOption(app, options->simd);
  app.add_option("--seconds", options->seconds,
                 "For a MODEL (default: 10) or each case of --kernel (1),\n"
                 "in each process; too few make no verdict")
      ->option_text("S")
      ->check(NumberFrom(0.001, 1e6));
  AddInputsOption(app, options->inputs);
  AddDimOption(app, options->dims);
  app.add_option("--against", options->against,
                 "Another MODEL, or 'ort', in the same rounds; can be repeated")
      ->option_text("M2")
      ->take_all()
      ->check(NotEmpty());
  app.add_option("--ort", options->ort,
                 "--against ort, with the libonnxruntime.so of this path")
      ->option_text("LIB")
      ->check(NotEmpty());
  app.add_flag("--no-pin", options->no_pin,
               "Let threads move; else each keeps to one core");
  app.add_option("--restarts", options->restarts,
                 "Processes to measure in, one after the other (default: 1)")
      ->option_text("N")
      ->transform(WholeNumber(1, 1000));
  app.add_option("--seed", options->seed,
                 "Of values and of the order of arms (default: 0)")
      ->option_text("N")
      ->transform(WholeNumber(0, UINT64_MAX));
  app.add_option("--html", options->html,
                 "Also write a page with charts; '-' is standard output")
      ->option_text("FILE")
      ->check(NotEmpty());
  app.add_flag("--force", options->force, "Replace that FILE if it exists");
  return [options](const Session& session) { return Run(*options, session); };
}

}  // namespace addnorm::tool
