// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/stepwise_norm.h"

#include <algorithm>
#include <utility>

#include "runtime/element_cast.h"
#include "runtime/kernels/row_ops.h"
#include "runtime/row_type.h"

namespace addnorm::runtime {
namespace {

template <typename From, typename To>
void CastElements(const From* from, To* to, size_t length) {
  if constexpr (std::is_same_v<From, To>) {
    std::copy_n(from, length, to);
  } else if constexpr (kIsHalfType<From> && std::is_same_v<To, float>) {
    WidenRow(from, to, length);
  } else if constexpr (std::is_same_v<From, float> && kIsHalfType<To>) {
    NarrowRow(from, to, length);
  } else {
    std::transform(from, from + length, to, CastElement<To, From>);
  }
}

template <typename T>
void ApplyTo(RowStep::Op op, T* row, const T* scale, T factor, T* scaled,
             size_t length) {
  switch (op) {
    case RowStep::Op::kTimesFactor:
      return BinaryRowScalar(BinaryOp::kMultiply, row, factor, row, length);
    case RowStep::Op::kOverFactor:
      return BinaryRowScalar(BinaryOp::kDivide, row, factor, row, length);
    case RowStep::Op::kTimesScale:
      return BinaryRows<T>(BinaryOp::kMultiply, row, scale, row, length);
    case RowStep::Op::kTimesScaledFactor:
      BinaryRowScalar(BinaryOp::kMultiply, scale, factor, scaled, length);
      return BinaryRows<T>(BinaryOp::kMultiply, row, scaled, row, length);
    case RowStep::Op::kCast:
      return;
  }
}

}  // namespace

void CastRow(ir::DataType from_type, const void* from, ir::DataType to_type,
             void* to, size_t length) {
  WithFloatType(from_type, [&]<typename From>() {
    WithFloatType(to_type, [&]<typename To>() {
      CastElements(static_cast<const From*>(from), static_cast<To*>(to),
                   length);
    });
  });
}

StepwiseNorm::StepwiseNorm(const RmsNormRecipe& recipe, size_t length)
    : recipe_(recipe),
      length_(length),
      row_(new std::byte[length * sizeof(double)]),
      other_(new std::byte[length * sizeof(double)]) {}

void StepwiseNorm::Add(const void* a, const void* b, void* x) const {
  WithFloatType(recipe_.type, [&]<typename T>() {
    BinaryRows(BinaryOp::kAdd, static_cast<const T*>(a),
               static_cast<const T*>(b), static_cast<T*>(x), length_);
  });
}

double StepwiseNorm::SumOfSquares(const void* x) {
  ir::DataType type = recipe_.type;
  CastRow(type, x, type, row_.get(), length_);
  for (const ir::DataType next : recipe_.casts_before_square) Cast(type, next);
  Cast(type, recipe_.square_type);
  if (!recipe_.squares_are_rounded) {
    return WithFloatType(type, [&]<typename T>() {
      return static_cast<double>(
          SumOfSquaresRow<T>(reinterpret_cast<const T*>(row_.get()), length_));
    });
  }
  WithFloatType(type, [&]<typename T>() {
    T* row = reinterpret_cast<T*>(row_.get());
    UnaryRow<T>(UnaryOp::kSquare, row, row, length_);
  });
  for (const ir::DataType next : recipe_.casts_of_squares) Cast(type, next);
  return WithFloatType(type, [&]<typename T>() {
    return static_cast<double>(
        SumRow<T>(reinterpret_cast<const T*>(row_.get()), length_));
  });
}

// The row as another type.
void StepwiseNorm::Cast(ir::DataType& type, ir::DataType to) {
  if (to == type) return;
  CastRow(type, row_.get(), to, other_.get(), length_);
  std::swap(row_, other_);
  type = to;
}

void StepwiseNorm::Normalise(const void* x, const void* scale, double factor,
                             void* y) {
  ir::DataType type = recipe_.type;
  CastRow(type, x, type, row_.get(), length_);
  for (const RowStep& step : recipe_.row_steps) {
    if (step.op == RowStep::Op::kCast) {
      Cast(type, step.type);
    } else {
      Apply(step, type, scale, factor);
    }
  }
  CastRow(type, row_.get(), type, y, length_);
}

void StepwiseNorm::Apply(const RowStep& step, ir::DataType type,
                         const void* scale, double factor) {
  WithFloatType(type, [&]<typename T>() {
    ApplyTo(step.op, reinterpret_cast<T*>(row_.get()),
            static_cast<const T*>(scale), CastElement<T>(factor),
            reinterpret_cast<T*>(other_.get()), length_);
  });
}

}  // namespace addnorm::runtime
