// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops that read or change dims and leave the elements where they are: their
// outputs share the operand's buffer.
#include <algorithm>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/groups.h"
#include "runtime/ops/shape_ops.h"

namespace addnorm::runtime {
namespace {

// A mark in dims; no tensor has it.
constexpr int64_t kNoDim = -1;

// Output 0 is operand 0 under other dims.
absl::Status Rename(OpContext& op, Dims dims) {
  const Tensor& x = op.input(0);
  if (ElementCount(dims) != x.count()) {
    return OpContext::Invalid("{} cannot have the shape {}", Describe(x),
                              ToString(dims));
  }
  op.SetOutput(0, x.WithDims(std::move(dims)));
  return absl::OkStatus();
}

// The dim that -1 stands for, given the others.
absl::Status InferDim(const Tensor& x, Dims& dims, size_t unknown) {
  dims[unknown] = 1;
  const int64_t known = ElementCount(dims).value_or(0);
  dims[unknown] = -1;
  if (known == 0 || x.count() % known != 0) {
    return OpContext::Invalid("{} cannot have the shape {}", Describe(x),
                              ToString(dims));
  }
  dims[unknown] = x.count() / known;
  return absl::OkStatus();
}

absl::Status Reshape(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  ASSIGN_OR_RETURN(const auto shape, IntsOf(op, 1, "shape"));
  if (!shape) return OpContext::Invalid("no shape is given");
  const Tensor& x = op.input(0);
  const bool zero_is_zero = op.attributes().Int("allowzero", 0) != 0;
  Dims dims = *shape;
  std::optional<size_t> unknown;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !zero_is_zero) {
      if (i >= x.dims().size()) {
        return OpContext::Invalid("shape {} keeps dim {} of {}",
                                  ToString(*shape), i, Describe(x));
      }
      dims[i] = x.dims()[i];
    } else if (dims[i] == -1) {
      if (unknown)
        return OpContext::Invalid("shape {} has two -1", ToString(*shape));
      unknown = i;
    }
  }
  if (unknown) RETURN_IF_ERROR(InferDim(x, dims, *unknown));
  return Rename(op, std::move(dims));
}

absl::Status Flatten(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  const int64_t given = op.attributes().Int("axis", 1);
  const int64_t axis = given < 0 ? given + x.rank() : given;
  if (axis < 0 || axis > x.rank()) {
    return OpContext::Invalid("axis {} is out of range for rank {}", given,
                              x.rank());
  }
  const auto middle = x.dims().begin() + axis;
  const auto outer = ElementCount(Dims(x.dims().begin(), middle));
  const auto inner = ElementCount(Dims(middle, x.dims().end()));
  return Rename(op, {outer.value_or(-1), inner.value_or(-1)});
}

absl::Status Squeeze(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const auto given, IntsOf(op, 1, "axes"));
  Dims dims = x.dims();
  if (!given) {
    std::erase(dims, 1);
    return Rename(op, std::move(dims));
  }
  ASSIGN_OR_RETURN(const Dims axes, NormalAxes(*given, x.rank()));
  for (const int64_t axis : axes) {
    if (dims[axis] != 1)
      return OpContext::Invalid("dim {} of {} is not 1", axis, Describe(x));
    dims[axis] = kNoDim;
  }
  std::erase(dims, kNoDim);
  return Rename(op, std::move(dims));
}

absl::Status Unsqueeze(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const auto given, IntsOf(op, 1, "axes"));
  if (!given) return OpContext::Invalid("no axes are given");
  const int64_t rank = x.rank() + static_cast<int64_t>(given->size());
  ASSIGN_OR_RETURN(const Dims axes, NormalAxes(*given, rank));
  Dims dims(static_cast<size_t>(rank), kNoDim);
  for (const int64_t axis : axes) dims[axis] = 1;
  auto next = x.dims().begin();
  for (int64_t& dim : dims) {
    if (dim == kNoDim) dim = *next++;
  }
  return Rename(op, std::move(dims));
}

absl::Status Shape(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  const auto bound = [&](std::string_view name, int64_t fallback) {
    const int64_t given = op.attributes().Int(name, fallback);
    return std::clamp<int64_t>(given < 0 ? given + x.rank() : given, 0,
                               x.rank());
  };
  const int64_t start = bound("start", 0);
  const int64_t end = std::max(start, bound("end", x.rank()));
  const auto first = x.dims().begin();
  op.SetOutput(0, Tensor::Vector(Dims(first + start, first + end)));
  return absl::OkStatus();
}

absl::Status Size(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  op.SetOutput(0, Tensor::Scalar(op.input(0).count()));
  return absl::OkStatus();
}

constexpr OpRow kRows[] = {
    {"", "Concat", Concat},
    {"", "DepthToSpace", DepthToSpace},
    {"", "Expand", Expand},
    {"", "Flatten", Flatten},
    {"", "Pad", Pad},
    {"", "Reshape", Reshape},
    {"", "ReverseSequence", ReverseSequence},
    {"", "Shape", Shape},
    {"", "Size", Size},
    {"", "Slice", Slice},
    {"", "SpaceToDepth", SpaceToDepth},
    {"", "Split", Split},
    {"", "Squeeze", Squeeze},
    {"", "Tile", Tile},
    {"", "Transpose", Transpose},
    {"", "Unsqueeze", Unsqueeze},
};

}  // namespace

OpTable ShapeOps() { return kRows; }

}  // namespace addnorm::runtime
