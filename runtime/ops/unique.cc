// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Unique: the different slices of a tensor along an axis.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/indexing_ops.h"
#include "runtime/ops/strided_copy.h"
#include "runtime/ops/total_order.h"

namespace addnorm::runtime {
namespace {

// Operand 0 as [outer, length, inner]; slice i is [:, i, :].
struct Slices {
  int64_t outer = 1, length = 0, inner = 1;
  int64_t run() const { return outer * inner; }
};

// Slices that are equal, as a class each.
struct Classes {
  std::vector<int64_t> first;     // by class: its first slice
  std::vector<int64_t> members;   // by class: how many slices
  std::vector<int64_t> class_of;  // by slice
};

// Negative, 0 or positive as slice a is before, equal to or after b.
template <typename T>
int CompareSlices(const T* a, const T* b, int64_t run) {
  for (int64_t i = 0; i < run; ++i) {
    if (LessInTotalOrder(a[i], b[i])) return -1;
    if (LessInTotalOrder(b[i], a[i])) return 1;
  }
  return 0;
}

// `data` has the slices one after the other.
template <typename T>
Classes SortedClasses(const T* data, const Slices& slices) {
  const int64_t run = slices.run();
  const auto compare = [&](int64_t a, int64_t b) {
    return CompareSlices(data + a * run, data + b * run, run);
  };
  std::vector<int64_t> order(static_cast<size_t>(slices.length));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int sign = compare(a, b);
    return sign < 0 || (sign == 0 && a < b);
  });
  Classes classes;
  classes.class_of.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) {
      classes.first.push_back(order[i]);
      classes.members.push_back(0);
    }
    ++classes.members.back();
    classes.class_of[order[i]] = static_cast<int64_t>(classes.first.size()) - 1;
  }
  return classes;
}

// The same classes in the order in which they first occur.
Classes InOrderOfOccurrence(const Classes& sorted) {
  std::vector<int64_t> order(sorted.first.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return sorted.first[a] < sorted.first[b];
  });
  Classes classes = sorted;
  std::vector<int64_t> renamed(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    classes.first[i] = sorted.first[order[i]];
    classes.members[i] = sorted.members[order[i]];
    renamed[order[i]] = static_cast<int64_t>(i);
  }
  for (int64_t& c : classes.class_of) c = renamed[c];
  return classes;
}

// Slices one after the other.
absl::StatusOr<Tensor> Contiguous(OpContext& op, const Slices& slices) {
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(Tensor copy, op.Scratch(x.type(), x.dims()));
  const int64_t element = ElementBytes(x);
  const int64_t row = slices.inner * element;
  Copy(op.threads(), {x.data<std::byte>(),
                      copy.mutable_data<std::byte>(),
                      row,
                      {{slices.length, row, slices.run() * element},
                       {slices.outer, slices.length * row, row}}});
  return copy;
}

absl::Status WriteSlices(OpContext& op, const Slices& slices, Dims dims,
                         const Classes& classes) {
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), std::move(dims)));
  const int64_t row = slices.inner * ElementBytes(x);
  std::byte* to = y->mutable_data<std::byte>();
  for (int64_t outer = 0; outer < slices.outer; ++outer) {
    for (const int64_t slice : classes.first) {
      std::memcpy(to,
                  x.data<std::byte>() + (outer * slices.length + slice) * row,
                  static_cast<size_t>(row));
      to += row;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Unique(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  Dims dims = {x.count()};
  int64_t axis = 0;
  if (op.attributes().Has("axis")) {
    dims = x.dims();
    ASSIGN_OR_RETURN(axis,
                     NormalAxis(op.attributes().Int("axis", 0), x.rank()));
  }
  const Slices slices{
      Product(dims, 0, axis), dims[axis],
      Product(dims, axis + 1, static_cast<int64_t>(dims.size()))};
  if (x.count() == 0 && slices.length != 0)
    return OpContext::Unsupported("slices without elements");
  ASSIGN_OR_RETURN(const Tensor data, Contiguous(op, slices));
  Classes classes;
  RETURN_IF_ERROR((op.ForType<ADDNORM_NUMBER_TYPES, bool>(x, [&]<typename T>() {
    classes = SortedClasses(data.data<T>(), slices);
  })));
  if (op.attributes().Int("sorted", 1) == 0)
    classes = InOrderOfOccurrence(classes);
  dims[axis] = static_cast<int64_t>(classes.first.size());
  if (x.count() == 0) {
    RETURN_IF_ERROR(op.Output(0, x.type(), dims).status());
  } else {
    RETURN_IF_ERROR(WriteSlices(op, slices, dims, classes));
  }
  op.SetOutput(1, Tensor::Vector(classes.first));
  op.SetOutput(2, Tensor::Vector(classes.class_of));
  op.SetOutput(3, Tensor::Vector(classes.members));
  return absl::OkStatus();
}

}  // namespace addnorm::runtime
