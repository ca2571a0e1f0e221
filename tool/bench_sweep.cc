// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/bench_sweep.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "runtime/kernels/norm_recipes.h"
#include "tool/machine_facts.h"

namespace addnorm::tool {
namespace {

using ir::DataType;
using runtime::CacheState;
using runtime::RmsNormRecipe;

// Of models that many people run.
constexpr int64_t kModelLengths[] = {2048, 3072, 4096, 5120, 8192};
constexpr int64_t kModelRows[] = {1, 32, 512, 2048};

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

// What they compute differs in where it rounds.
struct RecipeRow {
  std::string_view word;
  RmsNormRecipe (*make)(DataType type);
};
constexpr RecipeRow kRecipes[] = {
    {"reciprocal", Reciprocal},  // x * (1 / rms), rounded, times the weight
    {"divide", Divide},          // x / rms, rounded, times the weight
    {"late", Late},  // x / rms times the weight in float, rounded once
};

absl::Status UnknownWord(std::string_view option, std::string_view word,
                         std::string_view choices) {
  return absl::FailedPreconditionError(
      fmt::format("{}: '{}' is none of them\nhint: it takes {}", option,
                  ir::Printable(word), choices));
}

// The row of that word; kFailedPrecondition says which words there are.
template <typename Row, size_t n>
absl::StatusOr<const Row*> RowOf(const Row (&rows)[n], std::string_view option,
                                 std::string_view word) {
  std::string choices;
  for (const Row& row : rows) {
    if (row.word == word) return &row;
    choices += fmt::format("{}{}", choices.empty() ? "" : ", ", row.word);
  }
  return UnknownWord(option, word, choices);
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

}  // namespace

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
    ASSIGN_OR_RETURN(const TypeRow* row, RowOf(kTypes, "--types", word));
    types.push_back(row->type);
  }
  return types;
}

absl::StatusOr<std::vector<CacheState>> ParseCaches(
    const std::vector<std::string>& words) {
  std::vector<CacheState> caches;
  for (const std::string& word : words) {
    ASSIGN_OR_RETURN(const CacheRow* row, RowOf(kCaches, "--caches", word));
    caches.push_back(row->cache);
  }
  return caches;
}

absl::StatusOr<std::vector<std::string>> ParseRecipes(
    const std::vector<std::string>& words) {
  for (const std::string& word : words)
    RETURN_IF_ERROR(RecipeOf(word, DataType::kFloat).status());
  return words;
}

absl::StatusOr<RmsNormRecipe> RecipeOf(std::string_view word, DataType type) {
  ASSIGN_OR_RETURN(const RecipeRow* row, RowOf(kRecipes, "--recipes", word));
  return row->make(type);
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

}  // namespace addnorm::tool
