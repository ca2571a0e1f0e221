// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Pad. Negative pads cut the operand first; what is left is then padded.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/shape_ops.h"
#include "runtime/ops/strided_copy.h"

namespace addnorm::runtime {
namespace {

// One axis: indices [skip, skip + kept) of the operand, with `before` and
// `after` more around them.
struct Padding {
  int64_t skip = 0, kept = 0;
  int64_t before = 0, after = 0;
  int64_t length = 0;  // of the output
};

absl::StatusOr<Padding> MakePadding(int64_t dim, int64_t begin, int64_t end) {
  Padding padding;
  int64_t sum = 0;
  if (__builtin_add_overflow(dim, begin, &sum) ||
      __builtin_add_overflow(sum, end, &padding.length) || padding.length < 0) {
    return OpContext::Invalid("a dim of {} is not padded by {} and {}", dim,
                              begin, end);
  }
  padding.before = std::max<int64_t>(begin, 0);
  padding.after = std::max<int64_t>(end, 0);
  padding.skip = begin < -dim ? dim : -std::min<int64_t>(begin, 0);
  padding.kept =
      std::max<int64_t>(0, dim - padding.skip + std::min<int64_t>(end, 0));
  return padding;
}

absl::StatusOr<std::vector<Padding>> PaddingsOf(const OpContext& op) {
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const auto pads,
                   IntsOf(op, 1, op.opset() < 2 ? "paddings" : "pads"));
  if (!pads) return OpContext::Invalid("no pads are given");
  std::vector<int64_t> axes(x.dims().size());
  std::iota(axes.begin(), axes.end(), 0);
  if (op.has_input(3)) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> given, op.Ints(3));
    ASSIGN_OR_RETURN(axes, NormalAxes(given, x.rank()));
  }
  if (pads->size() != 2 * axes.size()) {
    return OpContext::Invalid("{} pads are given for {} axes", pads->size(),
                              axes.size());
  }
  std::vector<Padding> paddings;
  for (const int64_t dim : x.dims()) paddings.push_back({0, dim, 0, 0, dim});
  for (size_t i = 0; i < axes.size(); ++i) {
    ASSIGN_OR_RETURN(
        paddings[axes[i]],
        MakePadding(x.dims()[axes[i]], (*pads)[i], (*pads)[i + axes.size()]));
  }
  return paddings;
}

// The bytes of the element that constant mode writes.
absl::StatusOr<std::vector<std::byte>> ValueOf(const OpContext& op) {
  const Tensor& x = op.input(0);
  std::vector<std::byte> bytes(ElementSize(x.type()));
  if (op.has_input(2)) {
    const Tensor& value = op.input(2);
    if (value.type() != x.type() || value.count() != 1) {
      return OpContext::Invalid("the value is {}, the operand {}",
                                Describe(value), Describe(x));
    }
    std::copy_n(value.data<std::byte>(), bytes.size(), bytes.begin());
  } else if (const float value = op.attributes().Float("value", 0);
             value != 0) {
    RETURN_IF_ERROR((op.ForType<ADDNORM_FLOAT_TYPES>(x, [&]<typename T>() {
      const T narrow = Narrow<T>(static_cast<ComputeType<T>>(value));
      std::memcpy(bytes.data(), &narrow, sizeof(T));
    })));
  }
  return bytes;
}

absl::Status PadConstant(OpContext& op, const std::vector<Padding>& paddings,
                         Tensor& y) {
  ASSIGN_OR_RETURN(const std::vector<std::byte> value, ValueOf(op));
  const Tensor& x = op.input(0);
  const int64_t element = ElementBytes(x);
  StridedCopy copy{
      x.data<std::byte>(), y.mutable_data<std::byte>(), element, {}};
  Fill(op.threads(), copy.to, y.count(), value.data(), element);
  const bool keeps = std::all_of(paddings.begin(), paddings.end(),
                                 [](const Padding& p) { return p.kept > 0; });
  if (!keeps || y.count() == 0) return absl::OkStatus();
  const Dims from = ByteStrides(x.dims(), element);
  const Dims to = ByteStrides(y.dims(), element);
  for (size_t i = 0; i < paddings.size(); ++i) {
    copy.from += paddings[i].skip * from[i];
    copy.to += paddings[i].before * to[i];
    copy.axes.push_back({paddings[i].kept, from[i], to[i]});
  }
  Copy(op.threads(), std::move(copy));
  return absl::OkStatus();
}

// Where an index (negative before the kept part) is found within it.
using Fold = int64_t (*)(int64_t index, int64_t kept);

int64_t FoldEdge(int64_t index, int64_t kept) {
  return std::clamp<int64_t>(index, 0, kept - 1);
}

int64_t FoldWrap(int64_t index, int64_t kept) {
  const int64_t rest = index % kept;
  return rest < 0 ? rest + kept : rest;
}

// Back and forth without repeating the ends.
int64_t FoldReflect(int64_t index, int64_t kept) {
  if (kept == 1) return 0;
  const int64_t rest = FoldWrap(index, 2 * (kept - 1));
  return rest < kept ? rest : 2 * (kept - 1) - rest;
}

struct Mode {
  std::string_view name;
  Fold fold;
};

constexpr Mode kModes[] = {
    {"edge", FoldEdge}, {"reflect", FoldReflect}, {"wrap", FoldWrap}};

// For each axis and index of the output, the offset in the operand.
absl::StatusOr<std::vector<std::vector<int64_t>>> OffsetsOf(
    const Tensor& x, const std::vector<Padding>& paddings, Fold fold) {
  const Dims strides = ByteStrides(x.dims(), ElementBytes(x));
  std::vector<std::vector<int64_t>> offsets;
  for (size_t i = 0; i < paddings.size(); ++i) {
    const Padding& padding = paddings[i];
    if (padding.kept == 0)
      return OpContext::Invalid("an empty axis {} has nothing to repeat", i);
    std::vector<int64_t>& axis = offsets.emplace_back(padding.length);
    for (int64_t k = 0; k < padding.length; ++k) {
      axis[k] =
          (padding.skip + fold(k - padding.before, padding.kept)) * strides[i];
    }
  }
  return offsets;
}

absl::Status PadFolded(OpContext& op, const std::vector<Padding>& paddings,
                       Fold fold, Tensor& y) {
  if (y.count() == 0) return absl::OkStatus();
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const auto offsets, OffsetsOf(x, paddings, fold));
  const size_t element = ElementSize(x.type());
  const std::vector<int64_t>& columns = offsets.back();
  const size_t width = columns.size();
  const int64_t rows = y.count() / static_cast<int64_t>(width);
  const auto pad_row = [&](int64_t row) {
    std::byte* to = y.mutable_data<std::byte>() + row * width * element;
    const std::byte* from = x.data<std::byte>();
    for (size_t i = offsets.size() - 1; i-- > 0;) {
      const int64_t length = static_cast<int64_t>(offsets[i].size());
      from += offsets[i][row % length];
      row /= length;
    }
    for (size_t k = 0; k < width; ++k)
      std::memcpy(to + k * element, from + columns[k], element);
  };
  op.threads().ParallelFor(rows,
                           GrainOfBytes(static_cast<int64_t>(width * element)),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t row = begin; row < end; ++row)
                               pad_row(row);
                           });
  return absl::OkStatus();
}

}  // namespace

absl::Status Pad(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const std::vector<Padding> paddings, PaddingsOf(op));
  const std::string name = op.attributes().String("mode", "constant");
  const auto* mode =
      std::find_if(std::begin(kModes), std::end(kModes),
                   [&](const Mode& row) { return row.name == name; });
  if (mode == std::end(kModes) && name != "constant")
    return OpContext::Invalid("mode is '{}'", name);
  Dims dims;
  bool changes = false;
  for (const Padding& padding : paddings) {
    dims.push_back(padding.length);
    changes |= padding.length != padding.kept;
  }
  if (!changes && dims == x.dims()) {
    op.SetOutput(0, x);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), std::move(dims)));
  return mode == std::end(kModes) ? PadConstant(op, paddings, *y)
                                  : PadFolded(op, paddings, mode->fold, *y);
}

}  // namespace addnorm::runtime
