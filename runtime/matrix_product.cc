// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/matrix_product.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/grain.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/kernels/row_product.h"
#include "runtime/wrapping.h"

namespace addnorm::runtime {
namespace {

// Writes the row's products at [row, column…), with the terms, to y.
template <typename T>
void FinishRow(const ProductTerms<T>& terms, int64_t row, int64_t column,
               int64_t width, const ComputeType<T>* products, T* y) {
  using A = ComputeType<T>;
  if (terms.is_plain())
    return RoundRow(products, y, static_cast<size_t>(width));
  const T* c = terms.c == nullptr
                   ? nullptr
                   : terms.c + row * terms.c_row + column * terms.c_column;
  for (int64_t j = 0; j < width; ++j) {
    A value = WrappingMultiply(terms.alpha, products[j]);
    if (c != nullptr) {
      value = WrappingAdd(
          value, WrappingMultiply(terms.beta, Widen(c[j * terms.c_column])));
    }
    y[j] = Rounded<T>(value);
  }
}

// ---- no products at all

template <typename T>
void FinishZeros(const GemmShape& shape, const ProductTerms<T>& terms, T* y) {
  const std::vector<ComputeType<T>> zeros(static_cast<size_t>(shape.n));
  for (int64_t i = 0; i < shape.m; ++i)
    FinishRow(terms, i, 0, shape.n, zeros.data(), y + i * shape.row_of_c());
}

// ---- one row or one column: as fast as the matrix can be read

// Elements `stride` apart, widened.
template <typename T>
std::vector<float> WidenedVector(const T* from, int64_t n, int64_t stride) {
  std::vector<float> values(static_cast<size_t>(n));
  if (stride == 1) {
    WidenRow(from, values.data(), values.size());
  } else {
    for (int64_t i = 0; i < n; ++i) values[i] = Widen(from[i * stride]);
  }
  return values;
}

// A vector times a matrix of n columns, whose elements are `row` and `column`
// apart; one of them is 1.
template <typename T>
struct VectorProduct {
  std::vector<float> vector;
  const T* matrix;
  int64_t n, row, column;

  void Compute(int64_t begin, int64_t width, float* products) const {
    const auto k = static_cast<int64_t>(vector.size());
    if (column == 1) {
      RowTimesMatrix(vector.data(), matrix + begin, k, row, width, products);
    } else {
      RowTimesTransposed(vector.data(), matrix + begin * column, k, column,
                         width, products);
    }
  }
};

// Calls finish(begin, width, products) for parts of the n results.
template <typename T, typename Finish>
void RunVectorProduct(const VectorProduct<T>& product, ThreadPool& threads,
                      Finish finish) {
  constexpr int64_t kBlock = 2048;  // results that stay in the L1 cache
  const auto k = static_cast<int64_t>(product.vector.size());
  threads.ParallelFor(product.n, LineGrain(k), [&](int64_t begin, int64_t end) {
    float products[kBlock];
    for (int64_t j = begin; j < end; j += kBlock) {
      const int64_t width = std::min(kBlock, end - j);
      product.Compute(j, width, products);
      finish(j, width, products);
    }
  });
}

template <typename T>
void OneRow(const GemmShape& shape, const T* a, const T* b, T* y,
            const ProductTerms<T>& terms, ThreadPool& threads) {
  const VectorProduct<T> product{WidenedVector(a, shape.k, shape.column_of_a()),
                                 b, shape.n, shape.row_of_b(),
                                 shape.column_of_b()};
  RunVectorProduct(product, threads,
                   [&](int64_t begin, int64_t width, const float* products) {
                     FinishRow(terms, 0, begin, width, products, y + begin);
                   });
}

// The same with the operands' places changed.
template <typename T>
void OneColumn(const GemmShape& shape, const T* a, const T* b, T* y,
               const ProductTerms<T>& terms, ThreadPool& threads) {
  const VectorProduct<T> product{WidenedVector(b, shape.k, shape.row_of_b()), a,
                                 shape.m, shape.column_of_a(),
                                 shape.row_of_a()};
  RunVectorProduct(product, threads,
                   [&](int64_t begin, int64_t width, const float* products) {
                     for (int64_t i = 0; i < width; ++i) {
                       FinishRow(terms, begin + i, 0, 1, products + i,
                                 y + (begin + i) * shape.row_of_c());
                     }
                   });
}

// ---- half types: blocks of floats

template <typename T>
class HalfBlocks {
 public:
  // Three blocks of floats fit in the L2 cache of most processors.
  static constexpr int64_t kRows = 128, kColumns = 256, kDepth = 512;

  HalfBlocks(const GemmShape& shape, const T* a, const T* b)
      : shape_(shape), a_(a), b_(b) {
    const auto block = [](int64_t rows, int64_t columns) {
      return std::make_unique_for_overwrite<float[]>(
          static_cast<size_t>(rows * columns));
    };
    const int64_t rows = std::min(kRows, shape.m);
    const int64_t columns = std::min(kColumns, shape.n);
    const int64_t depth = std::min(kDepth, shape.k);
    wide_a_ = block(rows, depth);
    wide_b_ = block(depth, columns);
    products_ = block(rows, columns);
  }

  const float* products() const { return products_.get(); }

  // Products of a block of rows and columns, densely.
  absl::Status Compute(int64_t row, int64_t rows, int64_t column,
                       int64_t columns) {
    for (int64_t p = 0; p < shape_.k; p += kDepth) {
      GemmShape part{.m = rows, .n = columns};
      part.k = std::min(kDepth, shape_.k - p);
      part.transpose_a = shape_.transpose_a;
      part.transpose_b = shape_.transpose_b;
      Widen(part.transpose_a,
            a_ + row * shape_.row_of_a() + p * shape_.column_of_a(), rows,
            part.k, shape_.row_of_a(), shape_.column_of_a(), wide_a_.get());
      Widen(part.transpose_b,
            b_ + p * shape_.row_of_b() + column * shape_.column_of_b(), part.k,
            columns, shape_.row_of_b(), shape_.column_of_b(), wide_b_.get());
      RETURN_IF_ERROR(GemmBlock(part, wide_a_.get(), wide_b_.get(),
                                products_.get(), p > 0));
    }
    return absl::OkStatus();
  }

 private:
  static void Widen(bool transposed, const T* from, int64_t rows,
                    int64_t columns, int64_t row, int64_t column, float* to) {
    if (transposed) {
      std::swap(rows, columns);
      std::swap(row, column);
    }
    for (int64_t i = 0; i < rows; ++i)
      WidenRow(from + i * row, to + i * columns, static_cast<size_t>(columns));
  }

  const GemmShape& shape_;
  const T* a_;
  const T* b_;
  std::unique_ptr<float[]> wide_a_, wide_b_, products_;
};

template <typename T>
absl::Status HalfProduct(const GemmShape& shape, const T* a, const T* b, T* y,
                         const ProductTerms<T>& terms, ThreadPool& threads) {
  using Blocks = HalfBlocks<T>;
  const int64_t row_blocks = (shape.m - 1) / Blocks::kRows + 1;
  const int64_t column_blocks = (shape.n - 1) / Blocks::kColumns + 1;
  std::atomic<bool> refused = false;
  threads.ParallelFor(
      row_blocks * column_blocks, 1, [&](int64_t begin, int64_t end) {
        Blocks blocks(shape, a, b);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = i / column_blocks * Blocks::kRows;
          const int64_t column = i % column_blocks * Blocks::kColumns;
          const int64_t rows = std::min(Blocks::kRows, shape.m - row);
          const int64_t columns = std::min(Blocks::kColumns, shape.n - column);
          if (!blocks.Compute(row, rows, column, columns).ok()) refused = true;
          for (int64_t r = 0; r < rows; ++r) {
            FinishRow(terms, row + r, column, columns,
                      blocks.products() + r * columns,
                      y + (row + r) * shape.row_of_c() + column);
          }
        }
      });
  if (refused) return absl::InternalError("oneDNN refuses a matrix product");
  return absl::OkStatus();
}

// ---- double and integers: loops

template <typename T>
void LoopProduct(const GemmShape& shape, const T* a, const T* b, T* y,
                 const ProductTerms<T>& terms, ThreadPool& threads) {
  constexpr int64_t kBlock = 256;
  const int64_t blocks = (shape.n - 1) / kBlock + 1;
  const auto one = [&](int64_t row, int64_t column) {
    const int64_t width = std::min(kBlock, shape.n - column);
    T sums[kBlock] = {};
    for (int64_t p = 0; p < shape.k; ++p) {
      const T factor = a[row * shape.row_of_a() + p * shape.column_of_a()];
      const T* from = b + p * shape.row_of_b() + column * shape.column_of_b();
      for (int64_t j = 0; j < width; ++j) {
        sums[j] = WrappingAdd(
            sums[j], WrappingMultiply(factor, from[j * shape.column_of_b()]));
      }
    }
    FinishRow(terms, row, column, width, sums,
              y + row * shape.row_of_c() + column);
  };
  threads.ParallelFor(shape.m * blocks, LineGrain(shape.k * kBlock),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i)
                          one(i / blocks, i % blocks * kBlock);
                      });
}

// The terms on a product that y holds already.
void FinishInPlace(const GemmShape& shape, const ProductTerms<float>& terms,
                   float* y, ThreadPool& threads) {
  threads.ParallelFor(shape.m, LineGrain(shape.n),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          float* row = y + i * shape.row_of_c();
                          FinishRow(terms, i, 0, shape.n, row, row);
                        }
                      });
}

}  // namespace

template <typename T>
absl::Status MatrixProduct(const GemmShape& shape, const T* a, const T* b, T* y,
                           const ProductTerms<T>& terms, ThreadPool& threads) {
  if (shape.m == 0 || shape.n == 0) return absl::OkStatus();
  if (shape.k == 0) {
    FinishZeros(shape, terms, y);
    return absl::OkStatus();
  }
  if constexpr (!std::is_same_v<ComputeType<T>, float>) {
    LoopProduct(shape, a, b, y, terms, threads);
    return absl::OkStatus();
  } else {
    if (shape.m == 1 || shape.n == 1) {
      (shape.m == 1 ? OneRow<T> : OneColumn<T>)(shape, a, b, y, terms, threads);
      return absl::OkStatus();
    }
    if constexpr (std::is_same_v<T, float>) {
      RETURN_IF_ERROR(Gemm(shape, a, b, y, threads));
      if (!terms.is_plain()) FinishInPlace(shape, terms, y, threads);
      return absl::OkStatus();
    } else {
      return HalfProduct(shape, a, b, y, terms, threads);
    }
  }
}

#define INSTANTIATE(T)                                                      \
  template absl::Status MatrixProduct(const GemmShape&, const T*, const T*, \
                                      T*, const ProductTerms<T>&,           \
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
