// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Add and RMSNorm, or RMSNorm alone, in one go over the rows, by a recipe: y
// and the sum have the bits that the ops of the recipe give one by one.
//
//   x = round(a + b); factor = scalar steps of sum(x * x); y = row steps of x
//
// A row is read once and is in the first-level cache when it is normalised. The
// common recipes have two loops of their own (row_passes.h); any other runs
// step by step on a row buffer. It does not broadcast: a and b are of one
// shape, and the scale is one row for all rows, or one element; a scale that
// differs from row to row is not supported.
//
//   ASSIGN_OR_RETURN(const auto norm, AddRmsNorm::Create(recipe));
//   RETURN_IF_ERROR(norm.Run({.rows = 512, .length = 4096, .a = a, .b = b,
//                             .scale = scale, .scale_count = 4096,
//                             .epsilon = 1e-6, .sum = b, .y = a}, threads));
#ifndef ADDNORM_RUNTIME_KERNELS_ADD_RMS_NORM_H_
#define ADDNORM_RUNTIME_KERNELS_ADD_RMS_NORM_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/kernels/row_passes.h"
#include "runtime/recipe.h"
#include "runtime/thread_pool.h"

namespace addnorm::runtime {

// How results are written. Streaming goes past the caches; it pays where the
// results do not fit in them.
enum class Stores : uint8_t { kBySize, kPlain, kStreaming };

// The operands of a call. sum may be a or b, and y may be either where its
// elements have the size of theirs; sum and y differ, and no other memory
// overlaps. Nothing need be aligned.
struct AddRmsNormOperands {
  int64_t rows = 0;
  int64_t length = 0;       // elements of a row
  const void* a = nullptr;  // rows * length
  const void* b = nullptr;  // likewise; nullptr for the norm of a alone,
                            // which has no sum
  const void* scale = nullptr;
  int64_t scale_count = 0;  // length or 1; 0 for a recipe without scale
  double epsilon = 0;
  void* sum = nullptr;  // nullptr where it is not wanted
  void* y = nullptr;
  double* factors = nullptr;  // the factor of each row, where wanted
  Stores stores = Stores::kBySize;
};

class AddRmsNorm {
 public:
  // kInvalidArgument where the types of the recipe do not fit together.
  static absl::StatusOr<AddRmsNorm> Create(RmsNormRecipe recipe);

  const RmsNormRecipe& recipe() const { return recipe_; }
  ir::DataType result_type() const { return result_type_; }
  // Whether the recipe has loops of its own; for tests and reports.
  bool has_own_loops() const;

  absl::Status Run(const AddRmsNormOperands& operands,
                   ThreadPool& threads) const;

 private:
  explicit AddRmsNorm(RmsNormRecipe recipe) : recipe_(std::move(recipe)) {}

  RmsNormRecipe recipe_;
  ir::DataType result_type_ = ir::DataType::kUndefined;
  // The loop for the row steps, up to the type in which the scale is read.
  std::optional<SecondPassKey> second_;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_KERNELS_ADD_RMS_NORM_H_
