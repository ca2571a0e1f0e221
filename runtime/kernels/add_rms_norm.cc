// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/add_rms_norm.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "passes/ir/status_macros.h"
#include "runtime/kernels/recipe_form.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/kernels/scalar_steps.h"
#include "runtime/kernels/stepwise_norm.h"
#include "runtime/tensor.h"

namespace addnorm::runtime {
namespace {

using ir::DataType;
using Bytes = std::unique_ptr<std::byte[]>;

// A call of fewer elements than two of these parts stays on one thread: handing
// a part to another one, awake, takes about as long as the work.
constexpr int64_t kElementsOfAPart = 16384;

// ---- the scale of a call

// A row of the scale, and the type in which it is stored.
struct ScaleRow {
  const void* data = nullptr;
  DataType type = DataType::kUndefined;
  Bytes buffer;  // of data, where it is not the caller's
};

Bytes NewRow(int64_t length, DataType type) {
  return Bytes(new std::byte[static_cast<size_t>(length) * ElementSize(type)]);
}

// One element for all, as a row.
void RepeatElement(ScaleRow& scale, int64_t length) {
  Bytes row = NewRow(length, scale.type);
  const size_t size = ElementSize(scale.type);
  const auto* element = static_cast<const std::byte*>(scale.data);
  for (int64_t i = 0; i < length; ++i)
    std::copy_n(element, size, row.get() + static_cast<size_t>(i) * size);
  scale.buffer = std::move(row);
  scale.data = scale.buffer.get();
}

// From the recipe's scale_types[from] to [to].
void CastScale(ScaleRow& scale, const RmsNormRecipe& recipe, size_t from,
               size_t to, int64_t length) {
  for (size_t i = from + 1; i <= to; ++i) {
    const DataType type = recipe.scale_types[i];
    if (type == scale.type) continue;
    Bytes row = NewRow(length, type);
    CastRow(scale.type, scale.data, type, row.get(),
            static_cast<size_t>(length));
    scale = {row.get(), type, std::move(row)};
  }
}

// The scale as the caller gives it, as a row.
ScaleRow GivenScale(const RmsNormRecipe& recipe,
                    const AddRmsNormOperands& operands) {
  ScaleRow scale;
  if (recipe.scale_types.empty()) return scale;
  scale.data = operands.scale;
  scale.type = recipe.scale_types[0];
  if (operands.scale_count != operands.length)
    RepeatElement(scale, operands.length);
  return scale;
}

// Casts in the recipe that a loop does itself: those at the end that widen.
size_t DepthBeforeWidening(const std::vector<DataType>& types) {
  size_t depth = types.size() - 1;
  while (depth > 0 && IsExact(types[depth - 1], types[depth])) --depth;
  return depth;
}

// The loop for the row steps, nullptr if there is none; the scale in the type
// that the loop reads, or else in the last one.
SecondPass ChooseSecondPass(std::optional<SecondPassKey> key,
                            const RmsNormRecipe& recipe, ScaleRow& scale,
                            int64_t length) {
  if (recipe.scale_types.empty()) return key ? SecondPassFor(*key) : nullptr;
  size_t depth = key ? DepthBeforeWidening(recipe.scale_types) : 0;
  CastScale(scale, recipe, 0, depth, length);
  if (key) key->scale = scale.type;
  if (const SecondPass pass = key ? SecondPassFor(*key) : nullptr) return pass;
  CastScale(scale, recipe, depth, recipe.scale_types.size() - 1, length);
  if (key) key->scale = scale.type;
  return key ? SecondPassFor(*key) : nullptr;
}

// ---- a call

int64_t LastLevelCacheBytes() {
  static const int64_t bytes = [] {
#ifdef _SC_LEVEL3_CACHE_SIZE
    const int64_t size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (size > 0) return size;
#endif
    return int64_t{32} << 20;
  }();
  return bytes;
}

struct Call {
  const AddRmsNorm& norm;
  const AddRmsNormOperands& operands;
  FirstPass first = nullptr;
  SecondPass second = nullptr;
  ScaleRow scale = {};
  size_t x_bytes = 0, y_bytes = 0;  // of a row
  bool streaming = false;

  size_t length() const { return static_cast<size_t>(operands.length); }
};

bool IsStreaming(const Call& call) {
  const AddRmsNormOperands& o = call.operands;
  if (o.stores != Stores::kBySize) return o.stores == Stores::kStreaming;
  // A row that overwrites one is in the caches already.
  const auto overwrites = [&](const void* p) { return p == o.a || p == o.b; };
  if (overwrites(o.y) || (o.sum != nullptr && overwrites(o.sum))) return false;
  const size_t bytes = call.y_bytes + (o.sum == nullptr ? 0 : call.x_bytes);
  return static_cast<int64_t>(bytes) > LastLevelCacheBytes() / o.rows;
}

// Rows of one part of a call, on one thread.
class PartOfRows {
 public:
  explicit PartOfRows(const Call& call) : call_(call) {
    const AddRmsNormOperands& o = call.operands;
    if (call.first == nullptr || call.second == nullptr)
      stepwise_.emplace(call.norm.recipe(), call.length());
    const bool keeps_x =
        o.b != nullptr &&
        (call.streaming || (o.sum == nullptr && call.y_bytes != call.x_bytes));
    if (keeps_x) x_.reset(new std::byte[call.x_bytes]);
    if (call.streaming) y_.reset(new std::byte[call.y_bytes]);
  }

  void Run(int64_t row) {
    const AddRmsNormOperands& o = call_.operands;
    const auto index = static_cast<size_t>(row);
    const void* a = At(o.a, index * call_.x_bytes);
    const void* b = At(o.b, index * call_.x_bytes);
    void* sum = At(o.sum, index * call_.x_bytes);
    void* y = At(o.y, index * call_.y_bytes);
    // Without a sum to write, x may be where y will be.
    void* x = x_ != nullptr ? x_.get() : sum != nullptr ? sum : y;
    const double squares = AddAndSquare(a, b, x);
    if (call_.streaming && b != nullptr && sum != nullptr)
      StreamRow(x, sum, call_.x_bytes);
    const double factor =
        RowFactor(call_.norm.recipe(), squares, o.length, o.epsilon);
    if (o.factors != nullptr) o.factors[index] = factor;
    void* to = call_.streaming ? y_.get() : y;
    Normalise(b == nullptr ? a : x, factor, to);
    if (call_.streaming) StreamRow(to, y, call_.y_bytes);
  }

 private:
  template <typename T>
  static T* At(T* base, size_t offset) {
    using Byte =
        std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    return base == nullptr ? nullptr : static_cast<Byte*>(base) + offset;
  }

  double AddAndSquare(const void* a, const void* b, void* x) {
    if (call_.first != nullptr) return call_.first(a, b, x, call_.length());
    if (b != nullptr) stepwise_->Add(a, b, x);
    return stepwise_->SumOfSquares(b == nullptr ? a : x);
  }

  void Normalise(const void* x, double factor, void* y) {
    const void* scale = call_.scale.data;
    if (call_.second != nullptr)
      return call_.second(x, scale, factor, y, call_.length());
    stepwise_->Normalise(x, scale, factor, y);
  }

  const Call& call_;
  Bytes x_, y_;
  std::optional<StepwiseNorm> stepwise_;
};

absl::Status CheckOperands(const RmsNormRecipe& recipe,
                           const AddRmsNormOperands& o) {
  if (o.rows < 0 || o.length < 0) {
    return absl::InvalidArgumentError(
        fmt::format("a norm of {} rows of {} elements", o.rows, o.length));
  }
  const bool has_scale = !recipe.scale_types.empty();
  const bool fits = has_scale ? o.scale_count == o.length || o.scale_count == 1
                              : o.scale_count == 0;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the scale of a norm has {} elements, expected {}",
                  o.scale_count, has_scale ? o.length : 0));
}

// nullptr: the sum of squares has no loop of its own.
FirstPass FirstPassOf(const RmsNormRecipe& recipe) {
  const bool is_plain = recipe.casts_before_square.empty() &&
                        recipe.casts_of_squares.empty() &&
                        recipe.squares_are_rounded;
  return is_plain ? FirstPassFor(recipe.type, recipe.square_type) : nullptr;
}

}  // namespace

absl::StatusOr<AddRmsNorm> AddRmsNorm::Create(RmsNormRecipe recipe) {
  AddRmsNorm norm(std::move(recipe));
  ASSIGN_OR_RETURN(norm.result_type_, ResultType(norm.recipe_));
  norm.second_ = SecondPassKeyOf(norm.recipe_);
  return norm;
}

bool AddRmsNorm::has_own_loops() const {
  if (!second_ || !FirstPassOf(recipe_)) return false;
  SecondPassKey key = *second_;
  if (!recipe_.scale_types.empty()) key.scale = recipe_.scale_types.back();
  return SecondPassFor(key) != nullptr;
}

absl::Status AddRmsNorm::Run(const AddRmsNormOperands& operands,
                             ThreadPool& threads) const {
  RETURN_IF_ERROR(CheckOperands(recipe_, operands));
  if (operands.rows == 0 || operands.length == 0) return absl::OkStatus();
  Call call = {.norm = *this, .operands = operands};
  call.x_bytes = call.length() * ElementSize(recipe_.type);
  call.y_bytes = call.length() * ElementSize(result_type_);
  call.streaming = IsStreaming(call);
  call.first = FirstPassOf(recipe_);
  call.scale = GivenScale(recipe_, operands);
  call.second = ChooseSecondPass(second_, recipe_, call.scale, operands.length);
  const int64_t grain =
      (kElementsOfAPart + operands.length - 1) / operands.length;
  threads.ParallelFor(operands.rows, grain, [&](int64_t begin, int64_t end) {
    PartOfRows part(call);
    for (int64_t row = begin; row < end; ++row) part.Run(row);
    if (call.streaming) FlushStreams();
  });
  return absl::OkStatus();
}

}  // namespace addnorm::runtime
