// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/mat_mul.h"

namespace addnorm::runtime {
namespace {

// An operand as matrices: their size as multiplied, and where each begins.
struct Matrices {
  Dims batch;
  std::vector<int64_t> batch_strides;
  int64_t rows = 1, columns = 1;
  int64_t leading = 0;  // distance of stored rows
  bool transposed = false;
};

absl::StatusOr<Matrices> MatricesOf(const Tensor& tensor, MatrixLayout layout,
                                    bool is_left) {
  Dims dims = tensor.dims();
  if (dims.empty())
    return OpContext::Invalid("operand {} is a scalar, expected rank >= 1",
                              is_left ? 0 : 1);
  if (dims.size() == 1) {
    layout = {};
    dims.insert(is_left ? dims.begin() : dims.end(), 1);
  }
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i-- > 0;)
    strides[i] = SizeProduct(strides[i + 1], dims[i + 1]);
  const size_t last = dims.size() - 1;
  const size_t row_axis = layout.transpose_batch ? 0 : last - 1;
  Matrices matrices;
  for (size_t i = 0; i < last; ++i) {
    if (i == row_axis) continue;
    matrices.batch.push_back(dims[i]);
    matrices.batch_strides.push_back(strides[i]);
  }
  matrices.rows = dims[row_axis];
  matrices.columns = dims[last];
  matrices.leading = strides[row_axis];
  matrices.transposed = layout.transpose;
  if (layout.transpose) std::swap(matrices.rows, matrices.columns);
  return matrices;
}

// Batches of both, aligned at the end.
absl::StatusOr<Dims> BroadcastBatches(const Matrices& a, const Matrices& b) {
  Dims dims(std::max(a.batch.size(), b.batch.size()), 1);
  for (size_t i = 1; i <= dims.size(); ++i) {
    const int64_t of_a = i <= a.batch.size() ? a.batch[a.batch.size() - i] : 1;
    const int64_t of_b = i <= b.batch.size() ? b.batch[b.batch.size() - i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1)
      return OpContext::Invalid("batches {} and {} do not broadcast",
                                ToString(a.batch), ToString(b.batch));
    dims[dims.size() - i] = of_a == 1 ? of_b : of_a;
  }
  return dims;
}

// Where each product's matrix begins, for all batches in order.
std::vector<int64_t> Offsets(const Matrices& matrices, const Dims& batches,
                             int64_t count) {
  std::vector<int64_t> offsets(static_cast<size_t>(count), 0);
  const size_t missing = batches.size() - matrices.batch.size();
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (size_t axis = batches.size(); axis-- > missing;) {
      const int64_t index = rest % batches[axis];
      rest /= batches[axis];
      if (matrices.batch[axis - missing] != 1)
        offsets[i] += index * matrices.batch_strides[axis - missing];
    }
  }
  return offsets;
}

bool IsOneMatrix(const Matrices& matrices) {
  return std::all_of(matrices.batch.begin(), matrices.batch.end(),
                     [](int64_t size) { return size == 1; });
}

}  // namespace

absl::StatusOr<BatchedProduct> MakeBatchedProduct(const Tensor& a,
                                                  const Tensor& b,
                                                  MatrixLayout a_layout,
                                                  MatrixLayout b_layout) {
  ASSIGN_OR_RETURN(Matrices left, MatricesOf(a, a_layout, true));
  ASSIGN_OR_RETURN(const Matrices right, MatricesOf(b, b_layout, false));
  if (left.columns != right.rows)
    return OpContext::Invalid("{} and {} do not match: {} columns, {} rows",
                              Describe(a), Describe(b), left.columns,
                              right.rows);
  BatchedProduct product;
  ASSIGN_OR_RETURN(const Dims batches, BroadcastBatches(left, right));
  product.dims = batches;
  if (a.rank() > 1) product.dims.push_back(left.rows);
  if (b.rank() > 1) product.dims.push_back(right.columns);
  // The offsets below are as many as the batches: not more than the result has
  // elements, nor needed where it has none.
  const std::optional<int64_t> elements = ElementCount(product.dims);
  if (!elements.has_value())
    return OpContext::Invalid("the product {} is too large",
                              ToString(product.dims));
  int64_t count = *elements == 0 ? 0 : *ElementCount(batches);
  // All rows times one matrix are a single product.
  if (count > 1 && IsOneMatrix(right) && !left.transposed &&
      !a_layout.transpose_batch) {
    left.rows *= count;
    count = 1;
  }
  product.shape = {.m = left.rows, .n = right.columns, .k = left.columns};
  product.shape.transpose_a = left.transposed;
  product.shape.transpose_b = right.transposed;
  product.shape.lda = left.leading;
  product.shape.ldb = right.leading;
  product.a_offsets = Offsets(left, batches, count);
  product.b_offsets = Offsets(right, batches, count);
  return product;
}

template <typename T>
absl::Status RunBatchedProduct(const BatchedProduct& product, const T* a,
                               const T* b, T* y, ComputeType<T> alpha,
                               ThreadPool& threads) {
  const GemmShape& shape = product.shape;
  const auto count = static_cast<int64_t>(product.a_offsets.size());
  ProductTerms<T> terms;
  terms.alpha = alpha;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      RETURN_IF_ERROR(MatrixProduct<T>(
          shape, a + product.a_offsets[i], b + product.b_offsets[i],
          y + i * shape.m * shape.n, terms, threads));
    }
    return absl::OkStatus();
  };
  // Many products: each on one thread. Few: each on all threads.
  constexpr int64_t kWorthAThread = 1 << 18;  // multiplications
  const int64_t work = std::max<int64_t>(shape.m * shape.n * shape.k, 1);
  return count >= threads.thread_count()
             ? threads.TryParallelFor(count, kWorthAThread / work + 1, run)
             : run(0, count);
}

#define INSTANTIATE(T)                                                     \
  template absl::Status RunBatchedProduct(const BatchedProduct&, const T*, \
                                          const T*, T*, ComputeType<T>,    \
                                          ThreadPool&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(Half)
INSTANTIATE(BFloat16)
INSTANTIATE(int32_t)
INSTANTIATE(int64_t)
INSTANTIATE(uint32_t)
INSTANTIATE(uint64_t)
#undef INSTANTIATE

}  // namespace addnorm::runtime
