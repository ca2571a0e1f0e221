// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// run M: executes a model on given or generated inputs.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "CLI/App.hpp"
#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/node_signatures.h"
#include "proto/tensor_file.h"
#include "proto/text.h"
#include "proto/whole_file.h"
#include "runtime/executor.h"
#include "spdlog/spdlog.h"
#include "tool/commands.h"
#include "tool/false_declarations.h"
#include "tool/fusion.h"
#include "tool/input_options.h"
#include "tool/npy.h"
#include "tool/option_checks.h"
#include "tool/progress.h"
#include "tool/run_inputs.h"
#include "tool/run_report.h"
#include "tool/simd_option.h"

namespace addnorm::tool {
namespace {

namespace fs = std::filesystem;
using runtime::Tensor;

struct Options {
  std::string model;
  std::string inputs;
  std::string outputs;
  std::string format = "pb";
  bool force = false;
  uint64_t seed = 0;
  std::vector<std::string> dims;
  std::optional<int> threads;
  std::string simd;
  bool profile = false;
  bool plan = false;
};

// Shows nodes of the main graph that are done, and passes all on to others.
class Observers : public runtime::RunObserver {
 public:
  explicit Observers(bool shows_progress)
      : progress_(shows_progress, NodeProgressText) {}

  void Add(RunObserver* observer) { observers_.push_back(observer); }
  void SetTotal(size_t nodes) { total_ = nodes; }
  void EndProgress() { progress_.Erase(); }

  void BeforeNode(const runtime::Step& step,
                  std::span<const Tensor> operands) override {
    if (depth_++ == 0) progress_.Update(done_, total_);
    for (RunObserver* observer : observers_)
      observer->BeforeNode(step, operands);
  }
  void AfterNode(const runtime::Step& step,
                 std::span<const Tensor> outputs) override {
    // The inner ones first, so that nobody's work counts as the node's time.
    for (auto it = observers_.rbegin(); it != observers_.rend(); ++it)
      (*it)->AfterNode(step, outputs);
    if (--depth_ == 0) ++done_;
  }

 private:
  std::vector<RunObserver*> observers_;
  Progress progress_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  int depth_ = 0;
};

std::vector<std::string> OutputFiles(const ir::Model& model,
                                     const Options& options) {
  std::vector<std::string> files;
  if (options.outputs.empty()) return files;
  const bool is_npy = options.format == "npy";
  const std::vector<std::string> stems = FileStems(model.graph.outputs());
  for (size_t i = 0; i < stems.size(); ++i) {
    const std::string file =
        is_npy ? stems[i] + ".npy" : fmt::format("output_{}.pb", i);
    files.push_back((fs::path(options.outputs) / file).string());
  }
  return files;
}

// Refuses before the run what would be refused after it.
absl::Status CheckFiles(const std::vector<std::string>& files, bool force) {
  for (const std::string& file : files) {
    std::error_code ignored;
    if (force || !fs::exists(fs::symlink_status(file, ignored))) continue;
    return absl::FailedPreconditionError(fmt::format(
        "{}: exists\nhint: --force replaces it", ir::Printable(file)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Serialize(const Tensor& tensor,
                                      const std::string& name,
                                      const std::string& file,
                                      const Options& options) {
  if (options.format == "npy") return NpyFromTensor(tensor);
  const ir::Tensor written{.name = name,
                           .type = tensor.type(),
                           .dims = tensor.dims(),
                           .elements = ir::InlineElements{tensor.ToBytes()}};
  return proto::SerializeTensor(written, file);
}

// New files appear together; replaced ones cannot be had back.
absl::Status WriteOutputs(const RunResult& result, const Options& options) {
  if (options.outputs.empty()) return absl::OkStatus();
  proto::MadePaths made;
  RETURN_IF_ERROR(made.MakeFolders(options.outputs));
  for (size_t i = 0; i < result.files.size(); ++i) {
    const std::string& file = result.files[i];
    ASSIGN_OR_RETURN(
        const std::string bytes,
        Serialize(result.outputs[i], result.model->graph.outputs()[i]->name(),
                  file, options));
    RETURN_IF_ERROR(options.force
                        ? proto::WriteWholeFile(file, bytes, /*replace=*/true)
                        : proto::WriteNewFile(file, bytes, made));
  }
  made.Keep();
  return absl::OkStatus();
}

// What a failed run says: the file, and the way out where we know one.
absl::Status RunError(const absl::Status& status, const std::string& file,
                      const RunInputs& inputs) {
  const absl::Status named = proto::WithContext(status, file);
  if (absl::IsUnimplemented(status)) {
    return proto::WithHint(
        named, fmt::format("this runtime has the operators of decoder models; "
                           "'onnx-addnorm inspect {}' lists what the model "
                           "uses",
                           file));
  }
  const std::string hint = GuessHint(status, inputs.dims);
  return hint.empty() ? named : proto::WithHint(named, hint);
}

absl::Status Execute(const ir::Model& model, const Options& options,
                     const Terminal& terminal, runtime::Profile& profile,
                     runtime::MemoryPlan& plan, RunResult& result) {
  RETURN_IF_ERROR(proto::CheckNodeSignatures(model));
  Observers observers(terminal.shows_progress);
  FalseDeclarations declarations;
  observers.Add(&declarations);
  if (options.plan) observers.Add(&plan);
  if (options.profile) observers.Add(&profile);
  ASSIGN_OR_RETURN(
      const auto executor,
      runtime::Executor::Create(
          model, {.threads = options.threads.value_or(DefaultThreads()),
                  .observer = &observers}));
  observers.SetTotal(executor->plan().steps.size());
  plan.Attach(*executor);
  if (options.profile) executor->WarmUp();
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(result.outputs, executor->Run(result.inputs.tensors));
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  observers.EndProgress();
  RETURN_IF_ERROR(declarations.status());
  result.false_declarations = declarations.all();
  result.threads = executor->thread_count();
  result.peak_bytes =
      options.plan ? plan.peaks().measured : executor->memory().peak();
  result.weight_bytes = executor->weight_memory().current();
  if (options.profile) result.profile = &profile;
  if (options.plan) result.plan = &plan;
  return absl::OkStatus();
}

void WarnOf(const RunResult& result, bool is_verbose) {
  constexpr size_t kShown = 5;
  const std::vector<FalseDeclaration>& all = result.false_declarations;
  const size_t shown = is_verbose ? all.size() : std::min(all.size(), kShown);
  for (size_t i = 0; i < shown; ++i)
    spdlog::warn("{}: {}", result.name, ToText(all[i]));
  if (shown < all.size()) {
    spdlog::warn(
        "{}: {} more values are not as declared (-v and --json have "
        "all)",
        result.name, all.size() - shown);
  }
}

absl::StatusOr<Answer> Run(const Options& options, const Session& session) {
  ApplySimd(options.simd);
  InputRequest request{.folder = options.inputs, .seed = options.seed};
  ASSIGN_OR_RETURN(request.dims, ParseDims(options.dims));
  ASSIGN_OR_RETURN(auto file, proto::OpenModelOrText(options.model));
  ASSIGN_OR_RETURN(const LoadedModel loaded, Load(std::move(file)));
  RunResult result;
  result.model = loaded.model.get();
  result.name = loaded.file->name();
  result.seed = options.seed;
  result.files = OutputFiles(*loaded.model, options);
  RETURN_IF_ERROR(CheckFiles(result.files, options.force));
  ASSIGN_OR_RETURN(result.inputs, GatherInputs(*loaded.model, request));
  for (const std::string& warning : result.inputs.warnings)
    spdlog::warn("{}", warning);
  runtime::Profile profile;
  runtime::MemoryPlan plan;
  const absl::Status status =
      Execute(*loaded.model, options, session.terminal, profile, plan, result);
  if (!status.ok()) return RunError(status, loaded.file->name(), result.inputs);
  WarnOf(result, session.verbose);
  RETURN_IF_ERROR(WriteOutputs(result, options));
  Answer answer;
  result.is_verbose = session.verbose;
  answer.text = ToText(result, session.terminal);
  answer.json = ToJson(result);
  return answer;
}

constexpr const char* kExamples = R"(Examples:
  onnx-addnorm run model.onnx
  onnx-addnorm run model.onnx --dim batch=2 --dim sequence=64 --seed 7
  onnx-addnorm run model.onnx --inputs data --outputs out --format npy
  onnx-addnorm run model.onnx --profile --plan

--inputs DIR has input_N.pb (a TensorProto; N: place among the inputs, from 0) or
NAME.npy. In NAME, slashes, backslashes, colons, control characters and a dot at
the beginning are "_". What is not there is generated: ids within their table,
positions, masks of ones, normally distributed floats; equal seeds give equal
inputs on every machine. Symbolic dimensions without --dim: batch 1, past 0,
total past + sequence, others 8.

Types that NumPy lacks are bits in a .npy file, of dtype V2 (bfloat16), V1 (float8,
float4), u1 or i1 (4 and 2 bits, one element a byte). To read and write them:
  np.load("y.npy").view(ml_dtypes.bfloat16)
  np.save("x.npy", np.asarray(x, ml_dtypes.bfloat16))

A value that is not of the declared element type is an error, as in ONNX; one of
another shape than declared is a warning.

A run takes as long as the model asks for; Ctrl-C ends it at once, 'timeout 60
onnx-addnorm run ...' after a minute. Memory that the machine does not have is
refused (exit 4).)";

}  // namespace

RunFunction AddRun(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.footer(kExamples);
  app.add_option("MODEL", options->model,
                 "A model, or one in ONNX text; '-' is standard input")
      ->required()
      ->option_text(" ");
  AddInputsOption(app, options->inputs);
  auto* outputs =
      app.add_option("--outputs", options->outputs,
                     "Write the outputs there; else their statistics are shown")
          ->option_text("DIR")
          ->check(NotEmpty());
  app.add_option("--format", options->format,
                 "Of the outputs: pb (output_N.pb, default) or npy (NAME.npy;\n"
                 "bfloat16 and float8 as bits, see --help)")
      ->option_text("FORMAT")
      ->check(CLI::IsMember({"pb", "npy"}))
      ->needs(outputs);
  app.add_flag("--force", options->force, "Replace outputs that exist");
  app.add_option("--seed", options->seed, "Of generated inputs (default: 0)")
      ->option_text("N")
      ->transform(WholeNumber(0, UINT64_MAX));
  AddDimOption(app, options->dims);
  app.add_option("--threads", options->threads, "Default: all cores")
      ->option_text("N")
      ->transform(WholeNumber(1, kMostThreads));
  AddSimdOption(app, options->simd);
  app.add_flag("--profile", options->profile,
               "Time of each operator and of the slowest nodes");
  app.add_flag("--plan", options->plan,
               "Memory: the peak, and the nodes that hold most; with -v what\n"
               "each node makes, takes over and frees");
  return [options](const Session& session) { return Run(*options, session); };
}

}  // namespace addnorm::tool
