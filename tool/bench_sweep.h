// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What bench --kernel can be asked to measure: words of the command line as
// shapes, types, states of the caches and recipes.
//
// Each kFailedPrecondition names the word that is wrong and says what can be
// given.
//
//   ASSIGN_OR_RETURN(sweep.shapes, ParseShapes({"512x4096", "cliff"}));
#ifndef ADDNORM_TOOL_BENCH_SWEEP_H_
#define ADDNORM_TOOL_BENCH_SWEEP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/pair_arms.h"
#include "runtime/recipe.h"

namespace addnorm::tool {

struct RowsShape {
  int64_t rows = 0;
  int64_t length = 0;
};

absl::StatusOr<std::vector<RowsShape>> ParseShapes(
    const std::vector<std::string>& words);
absl::StatusOr<std::vector<ir::DataType>> ParseTypes(
    const std::vector<std::string>& words);
absl::StatusOr<std::vector<runtime::CacheState>> ParseCaches(
    const std::vector<std::string>& words);
// Stay words, since what they compute depends on the type.
absl::StatusOr<std::vector<std::string>> ParseRecipes(
    const std::vector<std::string>& words);
absl::StatusOr<runtime::RmsNormRecipe> RecipeOf(std::string_view word,
                                                ir::DataType type);

std::string_view TypeWord(ir::DataType type);           // "f16"
std::string_view CacheWord(runtime::CacheState cache);  // "cold"

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_SWEEP_H_
