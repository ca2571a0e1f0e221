// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_kernel.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "runtime/compare.h"
#include "runtime/core_pinning.h"
#include "runtime/kernels/norm_recipes.h"
#include "runtime/tensor.h"
#include "tool/bench_ort.h"
#include "tool/machine_facts.h"
#include "tool/report.h"

namespace addnorm::tool {
namespace {

using ir::DataType;
using runtime::CacheState;
using runtime::RmsNormRecipe;

// Of models that many people run.
constexpr int64_t kModelLengths[] = {2048, 3072, 4096, 5120, 8192};
constexpr int64_t kModelRows[] = {1, 32, 512, 2048};

// Enough that four times the last-level cache is the usual case; machines whose
// cache is larger than this share it among more cores than a run has.
constexpr size_t kMostColdBytes = size_t{1} << 30;
// More make no interval narrower that the machine's own moods do not widen.
constexpr size_t kMostRounds = 500;
constexpr size_t kLeastColdBytes = size_t{64} << 20;

// Of a sweep over the caches: rows of so many elements, four times as many rows
// from size to size.
constexpr int64_t kCliffLength = 1024;
constexpr int64_t kCliffFactor = 4;

struct TypeRow {
  std::string_view word;
  DataType type;
};
constexpr TypeRow kTypes[] = {{"f32", DataType::kFloat},
                              {"f16", DataType::kFloat16},
                              {"bf16", DataType::kBFloat16},
                              {"f64", DataType::kDouble}};

struct CacheRow {
  std::string_view word;
  CacheState cache;
};
constexpr CacheRow kCaches[] = {{"warm", CacheState::kWarm},
                                {"cold", CacheState::kCold},
                                {"producer", CacheState::kProducer}};

DataType Stash(DataType type) {
  return type == DataType::kDouble ? type : DataType::kFloat;
}

RmsNormRecipe Divide(DataType type) {
  return runtime::RmsNormalizationRecipe(type, type, Stash(type));
}

RmsNormRecipe Reciprocal(DataType type) {
  RmsNormRecipe recipe = Divide(type);
  recipe.scalar_steps.push_back({.op = runtime::ScalarStep::Op::kReciprocal});
  for (runtime::RowStep& step : recipe.row_steps) {
    if (step.op == runtime::RowStep::Op::kOverFactor)
      step.op = runtime::RowStep::Op::kTimesFactor;
  }
  return recipe;
}

RmsNormRecipe Late(DataType type) {
  return runtime::SimplifiedLayerNormalizationRecipe(type, type);
}

struct RecipeRow {
  NamedRecipe named;
  RmsNormRecipe (*make)(DataType type);
};
constexpr RecipeRow kRecipes[] = {
    {{"reciprocal", "x * (1 / rms), rounded, times the weight: Llama's"},
     Reciprocal},
    {{"divide", "x / rms, rounded, times the weight: RMSNormalization"},
     Divide},
    {{"late", "x / rms times the weight in float, rounded once"}, Late},
};

template <typename Row, typename WordOf>
std::string Words(const Row& rows, WordOf word_of) {
  std::string words;
  for (const auto& row : rows) {
    words += words.empty() ? "" : ", ";
    words += word_of(row);
  }
  return words;
}

absl::Status UnknownWord(std::string_view option, std::string_view word,
                         std::string_view choices) {
  return absl::FailedPreconditionError(
      fmt::format("{}: '{}' is none of them\nhint: it takes {}", option,
                  ir::Printable(word), choices));
}

std::optional<int64_t> Number(std::string_view text) {
  // More elements than that fit no machine's memory.
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number < 1 || number > kMost)
    return std::nullopt;
  return number;
}

std::optional<RowsShape> ParseShape(std::string_view word) {
  const size_t x = word.find('x');
  if (x == std::string_view::npos) return std::nullopt;
  const auto rows = Number(word.substr(0, x));
  const auto length = Number(word.substr(x + 1));
  if (!rows || !length) return std::nullopt;
  return RowsShape{*rows, *length};
}

// From what the first-level cache holds to twice the last one, or an eighth of
// the memory; by what the machine has and not by what is free, so that each
// restart has the same shapes.
void AddCliffShapes(std::vector<RowsShape>& shapes) {
  constexpr int64_t kFloatTensors = 4 * 4;
  const MachineFacts machine = GatherMachineFacts();
  int64_t most = std::max<int64_t>(2 * machine.last_level_cache, 64 << 20);
  if (machine.memory > 0) most = std::min(most, machine.memory / 8);
  int64_t bytes = 0;
  for (int64_t rows = 1; bytes < most; rows *= kCliffFactor) {
    shapes.push_back({rows, kCliffLength});
    bytes = rows * kCliffLength * kFloatTensors;
  }
}

size_t ColdBytes(const MachineFacts& machine) {
  const auto wanted = static_cast<size_t>(4 * machine.last_level_cache);
  const auto spare = static_cast<size_t>(machine.available / 4);
  return std::max(kLeastColdBytes, std::min({wanted, spare, kMostColdBytes}));
}

// Before anything is timed: a sweep that ends in the middle helps nobody.
absl::Status CheckSizes(const KernelSweep& sweep, int64_t available) {
  for (const DataType type : sweep.types) {
    for (const RowsShape& shape : sweep.shapes) {
      const double bytes = static_cast<double>(shape.rows) *
                           static_cast<double>(shape.length) *
                           static_cast<double>(runtime::ElementSize(type));
      // Four tensors, in two sets at least.
      if (8 * bytes <= static_cast<double>(available)) continue;
      return absl::ResourceExhaustedError(fmt::format(
          "--shapes {}x{}: {} for two sets of buffers, {} of memory are "
          "available",
          shape.rows, shape.length,
          FormatBytes(static_cast<uint64_t>(std::min(8 * bytes, 1e18))),
          FormatBytes(static_cast<uint64_t>(available))));
    }
  }
  return absl::OkStatus();
}

std::vector<KernelCase> CasesOf(const KernelSweep& sweep) {
  std::vector<KernelCase> cases;
  for (const std::string& recipe : sweep.recipes) {
    const auto* row = std::find_if(
        std::begin(kRecipes), std::end(kRecipes),
        [&](const RecipeRow& r) { return r.named.name == recipe; });
    for (const DataType type : sweep.types)
      for (const RowsShape& shape : sweep.shapes)
        for (const int threads : sweep.threads)
          for (const CacheState cache : sweep.caches)
            cases.push_back({.recipe = recipe,
                             .shape = shape,
                             .setting = {.recipe = row->make(type),
                                         .rows = shape.rows,
                                         .length = shape.length,
                                         .cache = cache,
                                         .threads = threads,
                                         .seed = sweep.seed}});
  }
  return cases;
}

absl::StatusOr<runtime::Tensor> AsTensor(const KernelCase& result,
                                         const std::vector<std::byte>& bytes) {
  return runtime::Tensor::FromBytes(
      result.setting.recipe.type, {result.shape.rows, result.shape.length},
      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
      nullptr);
}

absl::StatusOr<runtime::Comparison> CompareResults(
    const KernelCase& result, const runtime::PairResults& expected,
    const runtime::PairResults& found) {
  runtime::Comparison all;
  for (const auto results :
       {&runtime::PairResults::y, &runtime::PairResults::sum}) {
    ASSIGN_OR_RETURN(const auto a, AsTensor(result, expected.*results));
    ASSIGN_OR_RETURN(const auto b, AsTensor(result, found.*results));
    all.Add(runtime::Compare(a, b));
  }
  return all;
}

// ONNX Runtime's arms, if there is one.
absl::StatusOr<std::unique_ptr<OrtPair>> AddOrt(const KernelSweep& sweep,
                                                runtime::PairArms& arms,
                                                KernelCase& result) {
  if (sweep.ort == nullptr) return nullptr;
  ASSIGN_OR_RETURN(auto ort,
                   OrtPair::Create(*sweep.ort, result.recipe, result.setting,
                                   result.cores, arms));
  result.not_run = ort->sides().not_run;
  const runtime::PairResults expected = arms.Results(0);
  for (const OrtSide& side : ort->sides().sides) {
    const size_t arm = runtime::kPairArmCount + result.others.size();
    ASSIGN_OR_RETURN(const runtime::Comparison results,
                     CompareResults(result, expected, arms.Results(arm)));
    RETURN_IF_ERROR(ort->failure());
    result.others.push_back({side.name, arm, results});
  }
  return ort;
}

// Each is compared with its like: ONNX Runtime's with its own unfused one,
// which is the first that it has.
std::vector<size_t> BasesOf(const KernelCase& result) {
  std::vector<size_t> bases;
  for (const runtime::PairArm& arm : runtime::kPairArms)
    bases.push_back(arm.base);
  bases.resize(bases.size() + result.others.size(), runtime::kPairArmCount);
  return bases;
}

absl::Status RunCase(const KernelSweep& sweep, runtime::BufferArena& arena,
                     std::function<bool(double)> on_progress,
                     KernelCase& result) {
  ASSIGN_OR_RETURN(const auto arms,
                   runtime::PairArms::Create(result.setting, arena));
  RETURN_IF_ERROR(arms->CheckBits());
  ASSIGN_OR_RETURN(const auto ort, AddOrt(sweep, *arms, result));
  result.tensor_bytes = arms->tensor_bytes();
  result.buffer_sets = arms->sets().size();
  runtime::BenchOptions options{.seconds = sweep.seconds,
                                .least_rounds = sweep.least_rounds,
                                .most_rounds = kMostRounds,
                                .seed = sweep.seed,
                                .on_progress = std::move(on_progress)};
  if (result.uses_processor_time()) {
    options.now = runtime::ProcessorSeconds;
    options.wall = runtime::SteadySeconds;
  }
  const UsageMeter meter;
  runtime::Timings timings = runtime::Interleave(arms->bench_arms(), options);
  result.usage = meter.Take();
  if (ort != nullptr) RETURN_IF_ERROR(ort->failure());
  result.times =
      MakeCase(arms->bench_arms(), BasesOf(result), std::move(timings));
  for (size_t arm = 0; arm < runtime::kPairArmCount; ++arm)
    result.times.arms[arm].instead = runtime::kPairArms[arm].instead;
  return absl::OkStatus();
}

}  // namespace

bool KernelCase::uses_processor_time() const {
  if (setting.threads != 1) return false;
  // Reading that clock takes about half a microsecond.
  constexpr int64_t kLeastElements = int64_t{1} << 15;
  return setting.cache != CacheState::kProducer ||
         setting.rows * setting.length >= kLeastElements;
}

std::vector<NamedRecipe> BenchRecipes() {
  std::vector<NamedRecipe> recipes;
  for (const RecipeRow& row : kRecipes) recipes.push_back(row.named);
  return recipes;
}

absl::StatusOr<std::vector<RowsShape>> ParseShapes(
    const std::vector<std::string>& words) {
  std::vector<RowsShape> shapes;
  for (const std::string& word : words) {
    if (word == "models") {
      for (const int64_t length : kModelLengths)
        for (const int64_t rows : kModelRows) shapes.push_back({rows, length});
      continue;
    }
    if (word == "cliff") {
      AddCliffShapes(shapes);
      continue;
    }
    const std::optional<RowsShape> shape = ParseShape(word);
    if (!shape) {
      return UnknownWord("--shapes", word,
                         "ROWSxLENGTH, such as 512x4096, 'models' or 'cliff'");
    }
    shapes.push_back(*shape);
  }
  return shapes;
}

absl::StatusOr<std::vector<DataType>> ParseTypes(
    const std::vector<std::string>& words) {
  std::vector<DataType> types;
  for (const std::string& word : words) {
    const auto* row =
        std::find_if(std::begin(kTypes), std::end(kTypes),
                     [&](const TypeRow& r) { return r.word == word; });
    if (row == std::end(kTypes)) {
      return UnknownWord("--types", word, Words(kTypes, [](const TypeRow& r) {
                           return r.word;
                         }));
    }
    types.push_back(row->type);
  }
  return types;
}

absl::StatusOr<std::vector<CacheState>> ParseCaches(
    const std::vector<std::string>& words) {
  std::vector<CacheState> caches;
  for (const std::string& word : words) {
    const auto* row =
        std::find_if(std::begin(kCaches), std::end(kCaches),
                     [&](const CacheRow& r) { return r.word == word; });
    if (row == std::end(kCaches)) {
      return UnknownWord(
          "--caches", word,
          Words(kCaches, [](const CacheRow& r) { return r.word; }));
    }
    caches.push_back(row->cache);
  }
  return caches;
}

absl::StatusOr<std::vector<std::string>> ParseRecipes(
    const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const bool is_known = std::any_of(
        std::begin(kRecipes), std::end(kRecipes),
        [&](const RecipeRow& row) { return row.named.name == word; });
    if (is_known) continue;
    return UnknownWord(
        "--recipes", word,
        Words(kRecipes, [](const RecipeRow& r) { return r.named.name; }));
  }
  return words;
}

std::string_view TypeWord(DataType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.word;
  }
  return ir::DataTypeName(type);
}

std::string_view CacheWord(CacheState cache) {
  for (const CacheRow& row : kCaches) {
    if (row.cache == cache) return row.word;
  }
  return "";
}

absl::StatusOr<std::vector<KernelCase>> BenchKernels(const KernelSweep& sweep) {
  const MachineFacts machine = GatherMachineFacts();
  RETURN_IF_ERROR(CheckSizes(sweep, machine.available));
  runtime::BufferArena arena(sweep.cold_bytes != 0 ? sweep.cold_bytes
                                                   : ColdBytes(machine));
  std::vector<KernelCase> cases = CasesOf(sweep);
  const int threads =
      *std::max_element(sweep.threads.begin(), sweep.threads.end());
  const runtime::CorePinning pinning(sweep.pins ? threads : 0);
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].cores = pinning.cores(cases[i].setting.threads);
    const auto on_progress = [&](double share) {
      if (sweep.on_progress)
        sweep.on_progress(static_cast<double>(i) + share, cases.size());
      return true;
    };
    RETURN_IF_ERROR(RunCase(sweep, arena, on_progress, cases[i]));
  }
  return cases;
}

}  // namespace addnorm::tool
