// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// optimize IN OUT: everything is read, decided and checked before anything is
// created, so that a failure leaves no output and no damage.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <limits>
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
#include "proto/export.h"
#include "proto/external_data.h"
#include "proto/file_output.h"
#include "proto/model_file.h"
#include "proto/rope.h"
#include "proto/status_macros.h"
#include "tool/commands.h"
#include "tool/fusion.h"
#include "tool/optimize_report.h"
#include "tool/output.h"

namespace addnorm::tool {
namespace {

struct Target {
  std::string_view name;
  std::string_view summary;
};

constexpr Target kTargets[] = {
    {"portable", "model-local functions, bit for bit, for any runtime"},
};

struct DataMode {
  std::string_view name;
  std::string_view summary;
  uint64_t copy_up_to;
};

constexpr DataMode kDataModes[] = {
    // What is copied unasked must not be worth a second thought.
    {"auto", "copies where needed, up to 64 MB", 64'000'000},
    {"keep", "never copies", 0},
    {"copy", "copies where needed", std::numeric_limits<uint64_t>::max()},
};

struct Options {
  std::string in;
  std::string out;
  bool explain = false;
  bool dry_run = false;
  bool force = false;
  std::string target = "portable";
  std::string data = "auto";
  std::optional<unsigned> expect_fused;
};

class Stopwatch {
 public:
  double wall_seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         wall_)
        .count();
  }
  double cpu_seconds() const {
    return static_cast<double>(std::clock() - cpu_) / CLOCKS_PER_SEC;
  }

 private:
  std::chrono::steady_clock::time_point wall_ =
      std::chrono::steady_clock::now();
  std::clock_t cpu_ = std::clock();
};

template <typename Row, size_t n>
std::vector<std::string> Names(const Row (&rows)[n]) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.emplace_back(row.name);
  return names;
}

// "auto: copies where needed, up to 64 MB", a choice a line.
template <typename Row, size_t n>
std::string Choices(const Row (&rows)[n]) {
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", row.name,
                        row.summary);
  }
  return text;
}

template <typename Row, size_t n>
const Row& Find(const Row (&rows)[n], std::string_view name) {
  return *std::find_if(std::begin(rows), std::end(rows),
                       [name](const Row& row) { return row.name == name; });
}

absl::Status CheckRequest(const Options& options, bool json) {
  if (options.out.empty() && !options.dry_run) {
    return absl::FailedPreconditionError(
        "OUT is missing\nhint: give a path for the output, or --dry-run");
  }
  if (options.out == "-" && json) {
    return absl::FailedPreconditionError(
        "OUT '-' and --json both need standard output\nhint: write the model "
        "to a file");
  }
  return absl::OkStatus();
}

// The output is beside its own copy of the data, or finds the input's.
bool IsCopied(const proto::DataFile& file, const std::string& out) {
  const auto own = std::filesystem::path(out).parent_path() / file.location;
  std::error_code error;
  return !std::filesystem::equivalent(own, file.path, error) && !error;
}

std::vector<DataFileFacts> DataFiles(const proto::ModelFile& file,
                                     const OptimizeResult& result) {
  std::vector<DataFileFacts> facts;
  for (const auto& [location, data] : file.external_data().files()) {
    facts.push_back(
        {.location = location,
         .bytes = static_cast<uint64_t>(data.info.st_size),
         .is_copied = result.is_written && IsCopied(data, result.output)});
  }
  return facts;
}

std::optional<Failure> UnmetExpectation(const Options& options,
                                        const passes::FusionReport& report) {
  const auto fused =
      static_cast<unsigned>(report.Count(passes::Verdict::kFused));
  if (!options.expect_fused || *options.expect_fused == fused) {
    return std::nullopt;
  }
  return Failure{.error = fmt::format("{}: expected {} fused sites, found {}",
                                      ir::Printable(options.in),
                                      *options.expect_fused, fused),
                 .hint = "--explain says why each site was fused or not"};
}

absl::Status Write(const proto::ModelFile& file, const proto::Rope& rope,
                   const std::string& out, const proto::WriteOptions& options) {
  absl::Status status = proto::WriteModel(file, rope, out, options);
  // A reader that has seen enough of the model is no failure.
  if (absl::IsUnavailable(status) && out == "-" && IsReaderGone()) {
    return absl::OkStatus();
  }
  return status;
}

// Fuses, and writes unless options or an unmet expectation say no.
absl::Status Optimize(const Options& options, OptimizeResult& result,
                      std::optional<Failure>& failure) {
  const proto::WriteOptions write{
      .force = options.force,
      .copy_data_up_to = Find(kDataModes, options.data).copy_up_to,
      .before_publish = nullptr};
  ASSIGN_OR_RETURN(std::shared_ptr<proto::ModelFile> file,
                   proto::ModelFile::Open(options.in));
  if (!options.out.empty()) {
    RETURN_IF_ERROR(proto::CheckTarget(*file, options.out, write));
  }
  ASSIGN_OR_RETURN(LoadedModel loaded, Load(file));
  result.before = CountOps(*loaded.model);
  ASSIGN_OR_RETURN(result.report, Fuse(loaded));
  result.after = CountOps(*loaded.model);
  ASSIGN_OR_RETURN(const proto::Rope rope, proto::Export(*file, *loaded.model));
  result.input = file->name();
  result.input_bytes = file->size();
  result.output_bytes = rope.size();
  failure = UnmetExpectation(options, result.report);
  if (!options.dry_run && !failure) {
    RETURN_IF_ERROR(Write(*file, rope, options.out, write));
    result.is_written = true;
  }
  result.data_files = DataFiles(*file, result);
  return absl::OkStatus();
}

absl::StatusOr<Answer> Run(const Options& options, const Session& session) {
  RETURN_IF_ERROR(CheckRequest(options, session.json));
  const Stopwatch watch;
  Answer answer;
  OptimizeResult result;
  result.output = options.out == "-" ? "<stdout>" : options.out;
  result.target = Find(kTargets, options.target).name;
  RETURN_IF_ERROR(Optimize(options, result, answer.failure));
  result.wall_seconds = watch.wall_seconds();
  result.cpu_seconds = watch.cpu_seconds();
  if (answer.failure) answer.exit_code = ExitCode::kNo;
  answer.stdout_is_taken = options.out == "-";
  Terminal terminal = session.terminal;
  if (answer.stdout_is_taken) terminal.color = terminal.color_errors;
  answer.text = ToText(result, options.explain, terminal);
  answer.json = ToJson(result);
  return answer;
}

constexpr const char* kExamples = R"(Examples:
  onnx-addnorm optimize model.onnx fused.onnx
  onnx-addnorm optimize model.onnx --dry-run --explain
  onnx-addnorm optimize model.onnx fused.onnx --expect-fused 24 --json
  onnx-addnorm optimize - - < model.onnx > fused.onnx

The fused op is a model-local function whose body is the fused nodes as they were,
so any runtime that knows functions computes the same bits. Weights are not read.)";

}  // namespace

RunFunction AddOptimize(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.footer(kExamples);
  app.add_option("IN", options->in, "The model; '-' is standard input")
      ->required()
      ->option_text(" ");
  app.add_option("OUT", options->out, "The fused model; '-' is standard output")
      ->option_text(" ");
  app.add_flag("--explain", options->explain,
               "Every site, with the reason where it stays");
  app.add_flag("--dry-run", options->dry_run,
               "Do all but writing; OUT can be left out");
  app.add_flag("--force", options->force,
               "Replace OUT if it exists (never the input)");
  app.add_option("--expect-fused", options->expect_fused,
                 "Write nothing and exit 1 unless N sites are fused")
      ->option_text("N");
  app.add_option("--target", options->target, Choices(kTargets))
      ->option_text("NAME")
      ->check(CLI::IsMember(Names(kTargets)));
  app.add_option(
         "--data", options->data,
         "External data, if OUT is in another folder:\n" + Choices(kDataModes))
      ->option_text("MODE")
      ->check(CLI::IsMember(Names(kDataModes)));
  return [options](const Session& session) { return Run(*options, session); };
}

}  // namespace addnorm::tool
