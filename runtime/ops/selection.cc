// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// TopK, NonZero and Trilu: elements chosen by value or by place.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/indexing_ops.h"
#include "runtime/ops/strided_copy.h"
#include "runtime/ops/total_order.h"

namespace addnorm::runtime {
namespace {

// Lines of a tensor along an axis, as TopK orders them: the lower index first
// among equals.
struct Lines {
  int64_t count = 0;
  int64_t length = 0, kept = 0;
  int64_t inner = 1;  // elements from one index of a line to the next
  bool largest = true;
};

// Scratch of one thread.
template <typename T>
struct Line {
  std::vector<ComputeType<T>> values;
  std::vector<int64_t> order;
};

template <typename T>
void SortLine(const Lines& lines, const T* from, Line<T>& line) {
  for (int64_t i = 0; i < lines.length; ++i)
    line.values[i] = Widen(from[i * lines.inner]);
  std::iota(line.order.begin(), line.order.end(), 0);
  const auto first = [&](int64_t a, int64_t b) {
    const auto x = line.values[lines.largest ? b : a];
    const auto y = line.values[lines.largest ? a : b];
    if (LessInTotalOrder(x, y)) return true;
    return a < b && !LessInTotalOrder(y, x);
  };
  const auto begin = line.order.begin();
  // A partial sort keeps a heap, which is slow where most elements stay.
  if (lines.kept > lines.length / 4) {
    std::sort(begin, line.order.end(), first);
  } else {
    std::partial_sort(begin, begin + lines.kept, line.order.end(), first);
  }
}

template <typename T>
void SortLines(ThreadPool& threads, const Lines& lines, const T* x, T* values,
               int64_t* indices) {
  const int64_t grain = std::max<int64_t>(1, 4096 / (lines.length + 1));
  threads.ParallelFor(lines.count, grain, [&](int64_t begin, int64_t end) {
    Line<T> line;
    line.values.resize(static_cast<size_t>(lines.length));
    line.order.resize(static_cast<size_t>(lines.length));
    for (int64_t n = begin; n < end; ++n) {
      const int64_t outer = n / lines.inner, inner = n % lines.inner;
      const T* from = x + outer * lines.length * lines.inner + inner;
      const int64_t to = outer * lines.kept * lines.inner + inner;
      SortLine(lines, from, line);
      for (int64_t i = 0; i < lines.kept; ++i) {
        values[to + i * lines.inner] = from[line.order[i] * lines.inner];
        indices[to + i * lines.inner] = line.order[i];
      }
    }
  });
}

template <typename T>
bool IsNonZero(T value) {
  if constexpr (kIsHalfType<T>) {
    return (value.bits & 0x7fff) != 0;
  } else {
    return value != T{};
  }
}

}  // namespace

absl::Status TopK(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const int64_t axis,
                   NormalAxis(op.attributes().Int("axis", -1), x.rank()));
  Lines lines;
  lines.kept = op.attributes().Int("k", -1);
  if (op.has_input(1)) {
    ASSIGN_OR_RETURN(lines.kept, IntOf(op, 1));
  }
  lines.length = x.dims()[axis];
  if (lines.kept < 0 || lines.kept > lines.length) {
    return OpContext::Invalid("k is {} for an axis of {}", lines.kept,
                              lines.length);
  }
  lines.largest = op.attributes().Int("largest", 1) != 0;
  lines.inner = Product(x.dims(), axis + 1, x.rank());
  lines.count = Product(x.dims(), 0, axis) * lines.inner;
  Dims dims = x.dims();
  dims[axis] = lines.kept;
  ASSIGN_OR_RETURN(Tensor values, op.Scratch(x.type(), dims));
  ASSIGN_OR_RETURN(Tensor indices, op.Scratch(ir::DataType::kInt64, dims));
  RETURN_IF_ERROR((op.ForType<ADDNORM_NUMBER_TYPES>(x, [&]<typename T>() {
    if (values.count() == 0) return;
    SortLines(op.threads(), lines, x.data<T>(), values.mutable_data<T>(),
              indices.mutable_data<int64_t>());
  })));
  op.SetOutput(0, std::move(values));
  op.SetOutput(1, std::move(indices));
  return absl::OkStatus();
}

absl::Status NonZero(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  std::vector<int64_t> places;
  RETURN_IF_ERROR((op.ForType<ADDNORM_NUMBER_TYPES, bool>(x, [&]<typename T>() {
    for (int64_t i = 0; i < x.count(); ++i) {
      if (IsNonZero(x.data<T>()[i])) places.push_back(i);
    }
  })));
  const int64_t count = static_cast<int64_t>(places.size());
  ASSIGN_OR_RETURN(Tensor * y,
                   op.Output(0, ir::DataType::kInt64, {x.rank(), count}));
  for (int64_t axis = x.rank(); axis-- > 0;) {
    int64_t* row = y->mutable_data<int64_t>() + axis * count;
    const int64_t dim = x.dims()[axis];
    for (int64_t i = 0; i < count; ++i) {
      row[i] = places[i] % dim;
      places[i] /= dim;
    }
  }
  return absl::OkStatus();
}

absl::Status Trilu(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  if (x.rank() < 2)
    return OpContext::Invalid("{} has no matrices", Describe(x));
  int64_t k = 0;
  if (op.has_input(1)) {
    ASSIGN_OR_RETURN(k, IntOf(op, 1));
  }
  const bool upper = op.attributes().Int("upper", 1) != 0;
  ASSIGN_OR_RETURN(Tensor * y, OutputLikeInput(op));
  if (y->count() == 0) return absl::OkStatus();
  const int64_t height = x.dims()[x.rank() - 2], width = x.dims().back();
  // Diagonals beyond the matrix are all the same, and do not overflow.
  k = std::clamp(k, -height, width);
  const int64_t element = ElementBytes(x);
  const auto clear = [&](int64_t row) {
    const int64_t diagonal = row % height + k;
    const int64_t begin =
        upper ? 0 : std::clamp<int64_t>(diagonal + 1, 0, width);
    const int64_t end = upper ? std::clamp<int64_t>(diagonal, 0, width) : width;
    std::memset(y->mutable_data<std::byte>() + (row * width + begin) * element,
                0, static_cast<size_t>((end - begin) * element));
  };
  op.threads().ParallelFor(y->count() / width, GrainOfBytes(width * element),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t row = begin; row < end; ++row)
                               clear(row);
                           });
  return absl::OkStatus();
}

}  // namespace addnorm::runtime
