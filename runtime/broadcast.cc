// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/broadcast.h"

#include <optional>
#include <string>
#include <utility>

#include "fmt/format.h"

namespace addnorm::runtime {
namespace {

using Operands = std::span<const Tensor* const>;

absl::Status DoNotFit(Operands operands) {
  std::string shapes;
  for (const Tensor* operand : operands) {
    if (!shapes.empty()) shapes += " and ";
    shapes += ToString(operand->dims());
  }
  return absl::InvalidArgumentError(
      fmt::format("operands of shapes {} do not broadcast", shapes));
}

// Shapes are aligned at their last axes; nullopt where they do not fit.
std::optional<Dims> CommonDims(Operands operands) {
  size_t rank = 0;
  for (const Tensor* operand : operands)
    rank = std::max(rank, operand->dims().size());
  Dims dims(rank, 1);
  for (const Tensor* operand : operands) {
    const Dims& own = operand->dims();
    for (size_t i = 0; i < own.size(); ++i) {
      int64_t& dim = dims[rank - own.size() + i];
      if (own[i] == 1 || own[i] == dim) continue;
      if (dim != 1) return std::nullopt;
      dim = own[i];
    }
  }
  return dims;
}

}  // namespace

absl::StatusOr<BroadcastPlan> BroadcastPlan::Of(Operands operands) {
  std::optional<Dims> dims = CommonDims(operands);
  if (!dims) return DoNotFit(operands);
  const std::optional<int64_t> count = ElementCount(*dims);
  if (!count) return DoNotFit(operands);  // more elements than int64 counts
  BroadcastPlan plan;
  plan.dims_ = *std::move(dims);
  plan.count_ = *count;
  // From the last axis to the first, each operand's stride is the product of
  // its own dims so far, or 0 where it is broadcast.
  std::vector<int64_t> products(operands.size(), 1);
  const size_t rank = plan.count_ == 0 ? 0 : plan.dims_.size();
  for (size_t back = 1; back <= rank; ++back) {
    Axis axis{plan.dims_[rank - back], std::vector<int64_t>(operands.size())};
    for (size_t k = 0; k < operands.size(); ++k) {
      const Dims& own = operands[k]->dims();
      const int64_t dim = back <= own.size() ? own[own.size() - back] : 1;
      axis.strides[k] = dim == 1 ? 0 : products[k];
      products[k] *= dim;
    }
    plan.AddAxis(std::move(axis));
  }
  // Single elements are a run too, of operands that all walk along.
  if (plan.axes_.empty())
    plan.axes_.push_back({1, std::vector<int64_t>(operands.size(), 1)});
  std::reverse(plan.axes_.begin(), plan.axes_.end());
  return plan;
}

// Adds the next axis outwards, or lengthens the last one where it goes on.
void BroadcastPlan::AddAxis(Axis axis) {
  if (axis.length == 1) return;
  const auto goes_on = [&] {
    const Axis& inner = axes_.back();
    for (size_t k = 0; k < axis.strides.size(); ++k) {
      if (axis.strides[k] != inner.strides[k] * inner.length) return false;
    }
    return true;
  };
  if (!axes_.empty() && goes_on()) {
    axes_.back().length *= axis.length;
  } else {
    axes_.push_back(std::move(axis));
  }
}

BroadcastPlan::Cursor::Cursor(const BroadcastPlan& plan, int64_t element)
    : plan_(plan),
      index_(plan.axes_.size()),
      offsets_(plan.axes_.back().strides.size()) {
  for (size_t axis = plan.axes_.size(); axis-- > 0;) {
    const int64_t length = plan.axes_[axis].length;
    Move(axis, element % length);
    element /= length;
  }
  left_ = plan.axes_.back().length - index_.back();
}

void BroadcastPlan::Cursor::Move(size_t axis, int64_t steps) {
  index_[axis] += steps;
  const std::vector<int64_t>& strides = plan_.axes_[axis].strides;
  for (size_t k = 0; k < offsets_.size(); ++k)
    offsets_[k] += steps * strides[k];
}

void BroadcastPlan::Cursor::Next() {
  size_t axis = index_.size() - 1;
  Move(axis, -index_[axis]);
  while (axis-- > 0) {
    Move(axis, 1);
    if (index_[axis] < plan_.axes_[axis].length) break;
    Move(axis, -index_[axis]);
  }
  left_ = plan_.axes_.back().length;
}

}  // namespace addnorm::runtime
