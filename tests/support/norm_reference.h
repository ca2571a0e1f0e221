// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Recipes of every kind, and what they mean by scalar arithmetic: on doubles
// that hold values of the recipe's types.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "passes/ir/type.h"
#include "runtime/recipe.h"
#include "tests/support/rows.h"

namespace addnorm::tests {

// All of the elements of one type: the first six have loops of their own.
std::vector<runtime::RmsNormRecipe> UniformRecipes(ir::DataType type);
// Those of each type, and mixtures.
std::vector<runtime::RmsNormRecipe> AllRecipes();

// The result of an op of that type whose exact result rounds to v.
double Round(ir::DataType type, double v);
double SumOfSquares(const runtime::RmsNormRecipe& recipe,
                    const std::vector<double>& x);
double Factor(const runtime::RmsNormRecipe& recipe, double sum, size_t n,
              double epsilon);
double Normalised(const runtime::RmsNormRecipe& recipe, double x, double factor,
                  double scale);

// Element i of memory of that type.
double Get(ir::DataType type, const std::byte* at, size_t i);
void Set(ir::DataType type, std::byte* at, size_t i, double v);
std::vector<std::byte> RandomRows(ir::DataType type, Data data, size_t n,
                                  std::mt19937& random);

}  // namespace addnorm::tests
