// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Einsum. Two operands whose summed labels both have are a product of matrices,
// for which operands and result are laid out anew where they must be. All else
// is loops: sums go over the labels that the result lacks, in the order in
// which the equation names them, the last one innermost.
#include <algorithm>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/einsum_loops.h"
#include "runtime/ops/mat_mul.h"
#include "runtime/ops/reduce_plan.h"
#include "runtime/wrapping.h"

namespace addnorm::runtime {
namespace {

// ---- loops

// Moves the operands' offsets to the next index of the loops.
void Advance(const std::vector<EinsumLoop>& loops, std::vector<int64_t>& index,
             std::vector<int64_t>& offsets) {
  for (size_t axis = loops.size(); axis-- > 0;) {
    const EinsumLoop& loop = loops[axis];
    const bool wraps = ++index[axis] == loop.size;
    const int64_t steps = wraps ? 1 - loop.size : 1;
    for (size_t i = 0; i < offsets.size(); ++i)
      offsets[i] += steps * loop.strides[i];
    if (!wraps) return;
    index[axis] = 0;
  }
}

// The offsets of the operands at one index of the result.
std::vector<int64_t> OffsetsAt(const EinsumLoops& loops, int64_t output,
                               size_t operands) {
  std::vector<int64_t> offsets(operands, 0);
  for (size_t axis = loops.kept.size(); axis-- > 0;) {
    const EinsumLoop& loop = loops.kept[axis];
    for (size_t i = 0; i < operands; ++i)
      offsets[i] += output % loop.size * loop.strides[i];
    output /= loop.size;
  }
  return offsets;
}

template <typename T>
T SumAt(const EinsumLoops& loops, const std::vector<const T*>& operands,
        std::vector<int64_t> offsets) {
  using A = ComputeType<T>;
  A sum{0};
  std::vector<int64_t> index(loops.summed.size(), 0);
  for (int64_t step = 0; step < loops.summed_count; ++step) {
    A product = Widen(operands[0][offsets[0]]);
    for (size_t i = 1; i < operands.size(); ++i) {
      product = WrappingMultiply(product, A{Widen(operands[i][offsets[i]])});
    }
    sum = WrappingAdd(sum, product);
    Advance(loops.summed, index, offsets);
  }
  return Rounded<T>(sum);
}

template <typename T>
absl::Status RunLoops(OpContext& op, const EinsumLoops& loops) {
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, kTypeOf<T>, loops.dims));
  std::vector<const T*> operands;
  for (size_t i = 0; i < op.input_count(); ++i)
    operands.push_back(op.input(i).data<T>());
  op.threads().ParallelFor(y->count(), LineGrain(loops.summed_count),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t i = begin; i < end; ++i) {
                               y->mutable_data<T>()[i] =
                                   SumAt(loops, operands,
                                         OffsetsAt(loops, i, operands.size()));
                             }
                           });
  return absl::OkStatus();
}

// ---- a product of matrices

// Loops by what they are to the product, and for the result their places in it.
struct ProductRoles {
  std::vector<EinsumLoop> batch, rows, columns, summed;
  std::vector<size_t> places;  // of batch, rows, columns in the result
};

std::vector<EinsumLoop> Joined(
    std::initializer_list<std::vector<EinsumLoop>> parts) {
  std::vector<EinsumLoop> loops;
  for (const auto& part : parts)
    loops.insert(loops.end(), part.begin(), part.end());
  return loops;
}

// False if the loops are no product, or one of copies much larger than the
// operands.
bool RolesOf(const EinsumLoops& loops, ProductRoles& roles) {
  std::vector<size_t> batch, rows, columns;
  for (size_t i = 0; i < loops.kept.size(); ++i) {
    const EinsumLoop& loop = loops.kept[i];
    const bool in_a = loop.strides[0] != 0, in_b = loop.strides[1] != 0;
    (in_a && in_b ? batch : in_b ? columns : rows).push_back(i);
  }
  for (const size_t i : batch) roles.batch.push_back(loops.kept[i]);
  for (const size_t i : rows) roles.rows.push_back(loops.kept[i]);
  for (const size_t i : columns) roles.columns.push_back(loops.kept[i]);
  for (const std::vector<size_t>& part : {batch, rows, columns})
    roles.places.insert(roles.places.end(), part.begin(), part.end());
  for (const EinsumLoop& loop : loops.summed) {
    if (loop.size == 1) continue;
    if (loop.strides[0] == 0 || loop.strides[1] == 0) return false;
    roles.summed.push_back(loop);
  }
  return true;
}

int64_t CountOf(const std::vector<EinsumLoop>& loops) {
  int64_t count = 1;
  for (const EinsumLoop& loop : loops) count *= loop.size;
  return count;
}

// True if the operand has its elements in the order of the loops already.
bool IsDense(const std::vector<EinsumLoop>& loops, size_t operand) {
  int64_t stride = 1;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    if (loop->size != 1 && loop->strides[operand] != stride) return false;
    stride *= loop->size;
  }
  return true;
}

// The elements in the order of the loops.
template <typename T>
void CopyInOrder(const T* from, StridedLoops loops, T* to) {
  StridedLoops::Loop last;
  if (!loops.loops.empty()) {
    last = loops.loops.back();
    loops.loops.pop_back();
  }
  for (const StridedLoops::Loop& loop : loops.loops) loops.count *= loop.size;
  for (int64_t i = 0; i < loops.count; ++i) {
    const T* row = from + loops.Offset(i);
    for (int64_t j = 0; j < last.size; ++j) *to++ = row[j * last.stride];
  }
}

// The operand in the order of the loops: itself, or a copy.
template <typename T>
absl::StatusOr<Tensor> InOrder(OpContext& op, size_t operand,
                               const std::vector<EinsumLoop>& loops) {
  const Tensor& x = op.input(operand);
  const int64_t count = CountOf(loops);
  if (IsDense(loops, operand) && count == x.count()) return x.WithDims({count});
  ASSIGN_OR_RETURN(Tensor copy, op.Scratch(x.type(), {count}));
  StridedLoops strided;
  for (const EinsumLoop& loop : loops)
    strided.loops.push_back({loop.size, loop.strides[operand]});
  CopyInOrder(x.data<T>(), std::move(strided), copy.mutable_data<T>());
  return copy;
}

// The result from a product [batch, rows, columns].
template <typename T>
absl::Status PutInPlace(OpContext& op, const EinsumLoops& loops,
                        const ProductRoles& roles, Tensor product) {
  if (std::is_sorted(roles.places.begin(), roles.places.end())) {
    op.SetOutput(0, product.WithDims(loops.dims));
    return absl::OkStatus();
  }
  StridedLoops strided;
  strided.loops.resize(loops.kept.size());
  int64_t stride = 1;
  for (size_t i = roles.places.size(); i-- > 0;) {
    const int64_t size = loops.kept[roles.places[i]].size;
    strided.loops[roles.places[i]] = {size, stride};
    stride *= size;
  }
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, kTypeOf<T>, loops.dims));
  CopyInOrder(product.data<T>(), std::move(strided), y->mutable_data<T>());
  return absl::OkStatus();
}

template <typename T>
absl::Status RunProduct(OpContext& op, const EinsumLoops& loops,
                        const ProductRoles& roles) {
  const int64_t batches = CountOf(roles.batch);
  const int64_t m = CountOf(roles.rows), n = CountOf(roles.columns);
  const int64_t k = CountOf(roles.summed);
  ASSIGN_OR_RETURN(
      const Tensor a,
      InOrder<T>(op, 0, Joined({roles.batch, roles.rows, roles.summed})));
  auto b_loops = Joined({roles.batch, roles.columns, roles.summed});
  const bool transposed = IsDense(b_loops, 1);
  if (!transposed) b_loops = Joined({roles.batch, roles.summed, roles.columns});
  ASSIGN_OR_RETURN(const Tensor b, InOrder<T>(op, 1, b_loops));
  ASSIGN_OR_RETURN(
      const BatchedProduct product,
      MakeBatchedProduct(
          a.WithDims({batches, m, k}),
          b.WithDims(transposed ? Dims{batches, n, k} : Dims{batches, k, n}),
          {}, {.transpose = transposed}));
  ASSIGN_OR_RETURN(Tensor y, op.Scratch(kTypeOf<T>, product.dims));
  RETURN_IF_ERROR(RunBatchedProduct<T>(product, a.data<T>(), b.data<T>(),
                                       y.mutable_data<T>(), ComputeType<T>{1},
                                       op.threads()));
  return PutInPlace<T>(op, loops, roles, std::move(y));
}

template <typename T>
inline constexpr bool kHasProduct = !std::is_integral_v<T> || sizeof(T) >= 4;

}  // namespace

absl::Status Einsum(OpContext& op) {
  ASSIGN_OR_RETURN(const EinsumLoops loops, EinsumLoopsOf(op));
  ProductRoles roles;
  // Where nothing is computed, sizes need no care.
  const bool is_empty =
      loops.summed_count == 0 || ElementCount(loops.dims) == 0;
  const bool is_product =
      op.input_count() == 2 && !is_empty && RolesOf(loops, roles);
  return op.ForType<ADDNORM_NUMBER_TYPES>(
      op.input(0), [&]<typename T>() -> absl::Status {
        if constexpr (kHasProduct<T>) {
          if (is_product) return RunProduct<T>(op, loops, roles);
        }
        return RunLoops<T>(op, loops);
      });
}

}  // namespace addnorm::runtime
