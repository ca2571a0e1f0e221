// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// MatMulInteger and QLinearMatMul: products of 8-bit integers with zero points,
// summed in 32 bits.
#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axis_split.h"
#include "runtime/ops/mat_mul.h"

namespace addnorm::runtime {
namespace {

// Scales or zero points of an operand, whose matrices are [rows, columns]: one
// for all, one a row of a (or column of b), or one a row of every matrix.
struct PerRow {
  int64_t count = 1;
  bool by_column = false;
  int64_t rows = 1, columns = 1;

  // Of which row or column the element at that index is.
  int64_t IndexOf(int64_t element) const {
    const int64_t row = element / columns;
    if (count == 1) return 0;
    if (!by_column) return row % count;
    return (row / rows * columns + element % columns) % count;
  }
};

absl::StatusOr<PerRow> PerRowOf(const Tensor& numbers, const Dims& dims,
                                bool by_column) {
  PerRow result;
  result.count = numbers.count();
  result.by_column = by_column;
  if (!dims.empty()) result.columns = dims.back();
  if (dims.size() > 1) result.rows = dims[dims.size() - 2];
  const int64_t one = by_column ? result.columns : result.rows;
  int64_t all = one;
  for (size_t i = 0; i + 2 < dims.size(); ++i) all = SizeProduct(all, dims[i]);
  if (result.count == 1 || result.count == one || result.count == all)
    return result;
  return OpContext::Invalid("{} is neither one number nor one a {} of {}",
                            Describe(numbers), by_column ? "column" : "row",
                            ToString(dims));
}

// The operand minus its zero point (operand `zero`, if given).
absl::StatusOr<Tensor> Centred(OpContext& op, size_t operand, size_t zero,
                               bool by_column) {
  const Tensor& x = op.input(operand);
  ASSIGN_OR_RETURN(Tensor wide, op.Scratch(ir::DataType::kInt32, x.dims()));
  PerRow rows;
  if (op.has_input(zero)) {
    if (op.input(zero).type() != x.type())
      return OpContext::Invalid("the zero point of {} is {}", Describe(x),
                                Describe(op.input(zero)));
    ASSIGN_OR_RETURN(rows, PerRowOf(op.input(zero), x.dims(), by_column));
  }
  RETURN_IF_ERROR((op.ForType<int8_t, uint8_t>(x, [&]<typename T>() {
    const T* zeros = op.has_input(zero) ? op.input(zero).data<T>() : nullptr;
    int32_t* to = wide.mutable_data<int32_t>();
    for (int64_t i = 0; i < x.count(); ++i) {
      to[i] = x.data<T>()[i];
      if (zeros != nullptr) to[i] -= zeros[rows.IndexOf(i)];
    }
  })));
  return wide;
}

absl::StatusOr<BatchedProduct> MultiplyCentred(OpContext& op, const Tensor& a,
                                               const Tensor& b, Tensor* y) {
  ASSIGN_OR_RETURN(const BatchedProduct product, MakeBatchedProduct(a, b));
  ASSIGN_OR_RETURN(*y, op.Scratch(ir::DataType::kInt32, product.dims));
  RETURN_IF_ERROR(
      RunBatchedProduct<int32_t>(product, a.data<int32_t>(), b.data<int32_t>(),
                                 y->mutable_data<int32_t>(), 1, op.threads()));
  return product;
}

// The dims of the result with those of vectors, which it lacks.
Dims MatrixDims(const OpContext& op, size_t a, size_t b, Dims dims) {
  if (op.input(b).rank() == 1) dims.push_back(1);
  if (op.input(a).rank() == 1) dims.insert(dims.end() - 1, 1);
  return dims;
}

// Scales of a, b and the result, as QLinearMatMul has them.
template <typename S>
struct Rescaling {
  const S *a, *b;
  PerRow a_rows, b_columns;
  S y;

  // The scales' arithmetic is in their own type, as the specification has it.
  double FactorAt(int64_t element) const {
    const S both = Rounded<S>(Widen(a[a_rows.IndexOf(element)]) *
                              Widen(b[b_columns.IndexOf(element)]));
    return static_cast<double>(Widen(Rounded<S>(Widen(both) / Widen(y))));
  }
};

template <typename S>
absl::StatusOr<Rescaling<S>> RescalingOf(const OpContext& op,
                                         const Dims& dims) {
  for (const size_t i : {1, 4, 6}) {
    if (op.input(i).type() != kTypeOf<S>)
      return OpContext::Invalid("scale {} is {}", i, Describe(op.input(i)));
  }
  ASSIGN_OR_RETURN(const PerRow a_rows, PerRowOf(op.input(1), dims, false));
  ASSIGN_OR_RETURN(const PerRow b_columns, PerRowOf(op.input(4), dims, true));
  return Rescaling<S>{op.input(1).data<S>(), op.input(4).data<S>(), a_rows,
                      b_columns, *op.input(6).data<S>()};
}

template <typename S, typename Y>
absl::Status Requantize(OpContext& op, const Tensor& products) {
  const Dims dims = MatrixDims(op, 0, 3, products.dims());
  ASSIGN_OR_RETURN(const Rescaling<S> rescaling, RescalingOf<S>(op, dims));
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, kTypeOf<Y>, products.dims()));
  const double zero = *op.input(7).data<Y>();
  for (int64_t i = 0; i < products.count(); ++i) {
    const double scaled =
        std::nearbyint(rescaling.FactorAt(i) * products.data<int32_t>()[i]);
    // A NaN, from scales that are no numbers, becomes the lowest.
    constexpr double kLow = std::numeric_limits<Y>::lowest();
    constexpr double kHigh = std::numeric_limits<Y>::max();
    const double value = scaled + zero;
    y->mutable_data<Y>()[i] =
        static_cast<Y>(value > kLow ? std::min(value, kHigh) : kLow);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MatMulInteger(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  ASSIGN_OR_RETURN(const Tensor a, Centred(op, 0, 2, false));
  ASSIGN_OR_RETURN(const Tensor b, Centred(op, 1, 3, true));
  Tensor y;
  RETURN_IF_ERROR(MultiplyCentred(op, a, b, &y).status());
  op.SetOutput(0, std::move(y));
  return absl::OkStatus();
}

absl::Status QLinearMatMul(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(8));
  if (op.input(6).count() != 1 || op.input(7).count() != 1)
    return OpContext::Unsupported("one scale for the result, found {} and {}",
                                  Describe(op.input(6)), Describe(op.input(7)));
  ASSIGN_OR_RETURN(const Tensor a, Centred(op, 0, 2, false));
  ASSIGN_OR_RETURN(const Tensor b, Centred(op, 3, 5, true));
  Tensor products;
  RETURN_IF_ERROR(MultiplyCentred(op, a, b, &products).status());
  return op.ForType<float, Half, BFloat16>(op.input(6), [&]<typename S>() {
    return op.ForType<int8_t, uint8_t>(op.input(7), [&]<typename Y>() {
      return Requantize<S, Y>(op, products);
    });
  });
}

}  // namespace addnorm::runtime
