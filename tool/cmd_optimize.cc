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
#include "passes/ir/status_macros.h"
#include "passes/target.h"
#include "proto/export.h"
#include "proto/external_data.h"
#include "proto/file_output.h"
#include "proto/import.h"
#include "proto/model_file.h"
#include "proto/rope.h"
#include "spdlog/spdlog.h"
#include "tool/commands.h"
#include "tool/fusion.h"
#include "tool/optimize_report.h"
#include "tool/option_checks.h"
#include "tool/output.h"
#include "tool/progress.h"
#include "tool/run_inputs.h"
#include "tool/verification.h"
#include "tool/verify_report.h"

namespace addnorm::tool {
namespace {

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
  bool mixed = false;
  std::string data = "auto";
  std::optional<unsigned> expect_fused;
  bool verify = false;
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

template <typename Rows>
std::vector<std::string> Names(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

// "auto: copies where needed, up to 64 MB", a choice a line.
template <typename Rows>
std::string Choices(const Rows& rows) {
  std::string text;
  for (const auto& row : rows) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", row.name,
                        row.summary);
  }
  return text;
}

template <typename Rows>
const auto& Find(const Rows& rows, std::string_view name) {
  return *std::find_if(std::begin(rows), std::end(rows),
                       [name](const auto& row) { return row.name == name; });
}

absl::Status CheckRequest(const Options& options, bool json) {
  if (options.out.empty() && !options.dry_run) {
    return absl::FailedPreconditionError(
        "OUT is missing\nhint: give a path for the output, or --dry-run");
  }
  if (proto::IsStandardOutput(options.out) && json) {
    return absl::FailedPreconditionError(fmt::format(
        "OUT '{}' and --json both need standard output\nhint: write the model "
        "to a file",
        ir::Printable(options.out)));
  }
  return absl::OkStatus();
}

// Where the output will find the file; to be asked before it is written.
DataPlace PlaceFor(const proto::DataFile& file,
                   const std::optional<std::string>& folder) {
  namespace fs = std::filesystem;
  if (!folder) return DataPlace::kUnknown;
  const fs::path own = fs::path(*folder) / file.location;
  std::error_code error;
  if (!fs::exists(own, error)) return DataPlace::kCopied;
  return fs::equivalent(own, file.path, error) ? DataPlace::kShared
                                               : DataPlace::kPresent;
}

std::vector<DataFileFacts> DataFiles(const proto::ModelFile& file,
                                     const std::optional<std::string>& folder) {
  std::vector<DataFileFacts> facts;
  for (const auto& [location, data] : file.external_data().files()) {
    facts.push_back({.location = location,
                     .bytes = static_cast<uint64_t>(data.info.st_size),
                     .place = PlaceFor(data, folder)});
  }
  return facts;
}

void WarnOfMissingData(const OptimizeResult& result) {
  if (result.data_files.empty()) return;
  const size_t others = result.data_files.size() - 1;
  spdlog::warn("{}: refers to '{}'{} and must be put beside {}", result.output,
               result.data_files.front().location,
               others == 0 ? ""
                           : fmt::format(" and {} other data file{}", others,
                                         others == 1 ? "" : "s"),
               others == 0 ? "it" : "them");
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
  if (absl::IsUnavailable(status) && proto::IsStandardOutput(out) &&
      IsReaderGone()) {
    return absl::OkStatus();
  }
  return status;
}

// Refuses early what would be refused in the end. There may be no OUT.
absl::Status CheckTarget(const proto::ModelFile& file, const Options& options,
                         const proto::WriteOptions& write) {
  if (options.out.empty()) return absl::OkStatus();
  return proto::CheckTarget(file, options.out, write);
}

absl::Status CheckVerifiable(const Options& options) {
  if (!options.verify) return absl::OkStatus();
  if (!options.dry_run) {
    ASSIGN_OR_RETURN(const auto folder, proto::FolderOf(options.out));
    if (folder) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "--verify compares a file before it gets its name\nhint: give the path "
      "of a file for the output, without --dry-run");
}

// What shows a failed verification again.
std::string CommandOf(const Options& options) {
  return fmt::format("onnx-addnorm optimize {} {} --verify --target {}{}",
                     options.in, options.out, options.target,
                     options.mixed ? " --mixed" : "");
}

// A portable output whose structure was compared must have the same one.
bool IsVerified(const Verification& done, const Options& options) {
  if (done.verdict == Verdict::kProven) return true;
  return done.verdict == Verdict::kEqualOnRuns &&
         (options.target != "portable" || !done.structure_reason.empty());
}

// Compares what was written with the input, both as a reader would see them.
absl::StatusOr<OutputVerification> VerifyOutput(
    const std::shared_ptr<proto::ModelFile>& input,
    const std::shared_ptr<proto::ModelFile>& written, const Options& options,
    Terminal terminal) {
  ASSIGN_OR_RETURN(proto::Imported a, proto::Import(input));
  ASSIGN_OR_RETURN(proto::Imported b, proto::Import(written));
  const LoadedModel loaded_a{input, std::move(a.model)};
  const LoadedModel loaded_b{written, std::move(b.model)};
  VerifyRequest request;
  request.threads = DefaultThreads();
  ASSIGN_OR_RETURN(const Verification done,
                   Verify(loaded_a, &loaded_b, request));
  OutputVerification result;
  result.is_verified = IsVerified(done, options);
  result.is_different = done.verdict == Verdict::kDifferent;
  // It goes to stderr then.
  if (!result.is_verified) terminal.color = terminal.color_errors;
  const VerifyNames names{options.in, options.out, CommandOf(options)};
  result.text = ToText(done, names, terminal);
  result.json = ToJson(done, names);
  return result;
}

Failure NotVerified(const OptimizeResult& result) {
  return {.error = result.verification->is_different
                       ? "the output is not what the input is; nothing was "
                         "written"
                       : "it was not proven that the output is what the input "
                         "is; nothing was written",
          .hint = result.target == "portable"
                      ? ""
                      : "operators of other targets round in their own way",
          .details = result.verification->text};
}

absl::Status WriteOutput(const std::shared_ptr<proto::ModelFile>& file,
                         const proto::Rope& rope, const Options& options,
                         proto::WriteOptions write, const Terminal& terminal,
                         OptimizeResult& result) {
  ASSIGN_OR_RETURN(const auto folder, proto::FolderOf(options.out));
  result.data_files = DataFiles(*file, folder);
  if (options.verify) {
    write.before_publish =
        [&](const std::shared_ptr<proto::ModelFile>& written) -> absl::Status {
      ASSIGN_OR_RETURN(result.verification,
                       VerifyOutput(file, written, options, terminal));
      return result.verification->is_verified
                 ? absl::OkStatus()
                 : absl::AbortedError("not verified");
    };
  }
  Progress progress(terminal.shows_progress);
  write.on_progress = [&progress](uint64_t done, uint64_t total) {
    progress.Update(done, total);
  };
  const absl::Status status = Write(*file, rope, options.out, write);
  progress.Erase();
  // A verification that says no is an answer.
  if (result.verification && !result.verification->is_verified)
    return absl::OkStatus();
  RETURN_IF_ERROR(status);
  result.is_written = true;
  if (!folder) WarnOfMissingData(result);
  return absl::OkStatus();
}

// Fuses, and writes unless options or an unmet expectation say no.
absl::Status Optimize(const Options& options, const Terminal& terminal,
                      OptimizeResult& result, std::optional<Failure>& failure) {
  const proto::WriteOptions write{
      .force = options.force,
      .copy_data_up_to = Find(kDataModes, options.data).copy_up_to};
  ASSIGN_OR_RETURN(std::shared_ptr<proto::ModelFile> file,
                   proto::ModelFile::Open(options.in));
  RETURN_IF_ERROR(CheckTarget(*file, options, write));
  RETURN_IF_ERROR(CheckVerifiable(options));
  ASSIGN_OR_RETURN(LoadedModel loaded, Load(file));
  // Again, now that the data files are known.
  RETURN_IF_ERROR(CheckTarget(*file, options, write));
  result.before = CountOps(*loaded.model);
  ASSIGN_OR_RETURN(
      result.report,
      Fuse(loaded, Find(passes::AllTargets(), options.target).target,
           options.mixed));
  result.after = CountOps(*loaded.model);
  ASSIGN_OR_RETURN(const proto::Rope rope, proto::Export(*file, *loaded.model));
  result.input = file->name();
  result.input_bytes = file->size();
  result.output_bytes = rope.size();
  failure = UnmetExpectation(options, result.report);
  if (!options.dry_run && !failure) {
    RETURN_IF_ERROR(WriteOutput(file, rope, options, write, terminal, result));
    if (result.verification && !result.is_written)
      failure = NotVerified(result);
    return absl::OkStatus();
  }
  result.data_files = DataFiles(*file, /*folder=*/std::nullopt);
  return absl::OkStatus();
}

absl::StatusOr<Answer> Run(const Options& options, const Session& session) {
  RETURN_IF_ERROR(CheckRequest(options, session.json));
  const Stopwatch watch;
  Answer answer;
  OptimizeResult result;
  result.output = options.out == "-" ? "<stdout>" : options.out;
  result.target = Find(passes::AllTargets(), options.target).name;
  RETURN_IF_ERROR(Optimize(options, session.terminal, result, answer.failure));
  result.wall_seconds = watch.wall_seconds();
  result.cpu_seconds = watch.cpu_seconds();
  if (answer.failure) answer.exit_code = ExitCode::kNo;
  answer.stdout_is_taken = proto::IsStandardOutput(options.out);
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
  onnx-addnorm optimize model.onnx fused.onnx --verify
  onnx-addnorm optimize - - < model.onnx > fused.onnx

The fused op is a model-local function whose body is the fused nodes as they were,
so any runtime that knows functions computes the same bits. Weights are not read,
but by --verify.)";

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
               "Replace OUT if it exists; never the input or data files");
  app.add_option("--expect-fused", options->expect_fused,
                 "Write nothing and exit 1 unless N sites are fused")
      ->option_text("N")
      ->transform(WholeNumber(0, UINT32_MAX));
  app.add_flag("--verify", options->verify,
               "Prove that the output is exactly the input before it appears;\n"
               "exit 1 and no output if it is not");
  app.add_option("--target", options->target,
                 "What pairs become:\n" + Choices(passes::AllTargets()))
      ->option_text("NAME")
      ->check(CLI::IsMember(Names(passes::AllTargets())));
  app.add_flag("--mixed", options->mixed,
               "Sites without a proof for the target become portable");
  app.add_option(
         "--data", options->data,
         "External data, if OUT is in another folder:\n" + Choices(kDataModes))
      ->option_text("MODE")
      ->check(CLI::IsMember(Names(kDataModes)));
  return [options](const Session& session) { return Run(*options, session); };
}

}  // namespace addnorm::tool
