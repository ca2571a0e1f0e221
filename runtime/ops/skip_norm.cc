// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/skip_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "passes/ir/status_macros.h"
#include "runtime/kernels/add_rms_norm.h"
#include "runtime/kernels/norm_recipes.h"
#include "runtime/kernels/row_ops.h"

namespace addnorm::runtime {
namespace {

constexpr int64_t kElementsOfAPart = 16384;

struct SkipNorm {
  int64_t rows = 0, length = 0;
  int64_t skip_rows = 0;  // row r of input meets row r mod skip_rows of skip
  double epsilon = 0;
  const Tensor &input, &skip, &gamma, &beta, &bias;  // the last two or absent
  Tensor *y = nullptr, *mean = nullptr, *inverse = nullptr, *sum = nullptr;
};

// A vector of the last dim.
absl::Status CheckVector(const OpContext& op, const char* name,
                         const Tensor& vector, bool is_optional) {
  if (is_optional && vector.is_absent()) return absl::OkStatus();
  const Tensor& input = op.input(0);
  const Dims expected = {input.dims().back()};
  if (vector.type() == input.type() && vector.dims() == expected)
    return absl::OkStatus();
  return OpContext::Invalid("{} is {}, expected {}{}", name, Describe(vector),
                            ir::DataTypeName(input.type()), ToString(expected));
}

// skip's dims, but for leading ones, are the last of input's.
absl::Status CheckSkip(const Tensor& input, const Tensor& skip) {
  const auto ones = std::find_if(skip.dims().begin(), skip.dims().end(),
                                 [](int64_t dim) { return dim != 1; });
  const auto rest = skip.dims().end() - ones;
  if (skip.type() == input.type() && rest <= input.rank() &&
      skip.rank() <= input.rank() &&
      std::equal(ones, skip.dims().end(), input.dims().end() - rest) &&
      !skip.dims().empty() && skip.dims().back() == input.dims().back())
    return absl::OkStatus();
  return OpContext::Invalid("skip is {}, expected the shape of input {}",
                            Describe(skip), Describe(input));
}

absl::StatusOr<SkipNorm> OperandsOf(OpContext& op, const Tensor& beta,
                                    const Tensor& bias) {
  RETURN_IF_ERROR(op.RequireInputs(3));
  const Tensor &input = op.input(0), &skip = op.input(1), &gamma = op.input(2);
  if (input.rank() < 1)
    return OpContext::Invalid("input is {}, expected rank >= 1",
                              Describe(input));
  RETURN_IF_ERROR(CheckSkip(input, skip));
  RETURN_IF_ERROR(CheckVector(op, "gamma", gamma, false));
  RETURN_IF_ERROR(CheckVector(op, "beta", beta, true));
  RETURN_IF_ERROR(CheckVector(op, "bias", bias, true));
  SkipNorm norm = {
      .input = input, .skip = skip, .gamma = gamma, .beta = beta, .bias = bias};
  norm.epsilon = static_cast<double>(op.attributes().Float("epsilon", 1e-12f));
  if (input.count() == 0) return norm;
  norm.length = input.dims().back();
  norm.rows = input.count() / norm.length;
  norm.skip_rows = skip.count() / norm.length;
  return norm;
}

absl::Status MakeOutputs(OpContext& op, SkipNorm& norm) {
  const Tensor& input = norm.input;
  Dims of_rows = input.dims();
  of_rows.back() = 1;
  ASSIGN_OR_RETURN(norm.y, op.Output(0, input.type(), input.dims()));
  if (op.wants_output(1)) {
    ASSIGN_OR_RETURN(norm.mean, op.Output(1, ir::DataType::kFloat, of_rows));
  }
  if (op.wants_output(2)) {
    ASSIGN_OR_RETURN(norm.inverse, op.Output(2, ir::DataType::kFloat, of_rows));
  }
  if (op.wants_output(3)) {
    ASSIGN_OR_RETURN(norm.sum, op.Output(3, input.type(), input.dims()));
  }
  return absl::OkStatus();
}

template <typename T>
std::vector<ComputeType<T>> Computed(const Tensor& vector) {
  std::vector<ComputeType<T>> row(static_cast<size_t>(vector.count()));
  if (!vector.is_absent()) WidenRow(vector.data<T>(), row.data(), row.size());
  return row;
}

void SetStatistics(const SkipNorm& norm, int64_t row, double mean,
                   double root) {
  if (norm.mean != nullptr) {
    norm.mean->mutable_data<float>()[row] = Canonical(static_cast<float>(mean));
  }
  if (norm.inverse != nullptr) {
    norm.inverse->mutable_data<float>()[row] =
        Canonical(static_cast<float>(1 / root));
  }
}

// Rows in the type C in which T computes, one after the other.
template <typename T>
class RowsOfSkipNorm {
 public:
  using C = ComputeType<T>;

  explicit RowsOfSkipNorm(SkipNorm& norm)
      : norm_(norm),
        n_(static_cast<size_t>(norm.length)),
        gamma_(Computed<T>(norm.gamma)),
        beta_(Computed<T>(norm.beta)),
        bias_(Computed<T>(norm.bias)) {}

  // f(row, x), which may change x, for each row.
  template <typename F>
  void ForEach(int64_t begin, int64_t end, F f) {
    std::vector<C> x(n_), other(n_);
    for (int64_t row = begin; row < end; ++row) {
      Add(row, x.data(), other.data());
      if (norm_.sum != nullptr)
        NarrowRow(x.data(), norm_.sum->template mutable_data<T>() + At(row),
                  n_);
      f(row, x.data());
    }
  }

  // y = (x - mean) / root * gamma + beta
  void LayerNorm(int64_t row, C* x) const {
    const C n = static_cast<C>(n_);
    const C mean = SumRow<C>(x, n_) / n;
    const C variance = SumOfSquaresRow<C>(x, n_) / n - mean * mean;
    const C root = std::sqrt(variance + static_cast<C>(norm_.epsilon));
    BinaryRowScalar<C>(BinaryOp::kSubtract, x, mean, x, n_);
    BinaryRowScalar<C>(BinaryOp::kDivide, x, root, x, n_);
    BinaryRows<C>(BinaryOp::kMultiply, x, gamma_.data(), x, n_);
    if (!beta_.empty()) BinaryRows<C>(BinaryOp::kAdd, x, beta_.data(), x, n_);
    NarrowRow(x, norm_.y->template mutable_data<T>() + At(row), n_);
    SetStatistics(norm_, row, static_cast<double>(mean),
                  static_cast<double>(root));
  }

  void RmsNorm(const AddRmsNorm& kernel, int64_t row, const C* x,
               ThreadPool& threads) const {
    double root = 0;
    // Cannot fail: the operands are checked.
    kernel
        .Run({.rows = 1,
              .length = norm_.length,
              .a = x,
              .scale = gamma_.data(),
              .scale_count = norm_.length,
              .epsilon = norm_.epsilon,
              .y = norm_.y->template mutable_data<T>() + At(row),
              .factors = &root},
             threads)
        .IgnoreError();
    SetStatistics(norm_, row, 0, root);
  }

 private:
  size_t At(int64_t row) const { return static_cast<size_t>(row) * n_; }

  void Add(int64_t row, C* x, C* other) const {
    WidenRow(norm_.input.data<T>() + At(row), x, n_);
    WidenRow(norm_.skip.data<T>() + At(row % norm_.skip_rows), other, n_);
    BinaryRows<C>(BinaryOp::kAdd, x, other, x, n_);
    if (!bias_.empty()) BinaryRows<C>(BinaryOp::kAdd, x, bias_.data(), x, n_);
  }

  SkipNorm& norm_;
  size_t n_;
  std::vector<C> gamma_, beta_, bias_;
};

int64_t Grain(const SkipNorm& norm) {
  return (kElementsOfAPart + norm.length - 1) / norm.length;
}

// In float or double from x to y, with one rounding at the end.
RmsNormRecipe RecipeFrom(ir::DataType compute, ir::DataType result) {
  RmsNormRecipe recipe = SimplifiedLayerNormalizationRecipe(compute, compute);
  recipe.row_steps.back() = {RowStep::Op::kCast, result};
  return recipe;
}

// Where nothing is rounded in between and there is no bias, the fused kernel
// does all rows.
absl::Status RunFused(const AddRmsNorm& kernel, const SkipNorm& norm,
                      ThreadPool& threads) {
  std::vector<double> roots;
  if (norm.mean != nullptr || norm.inverse != nullptr)
    roots.resize(static_cast<size_t>(norm.rows));
  RETURN_IF_ERROR(kernel.Run(
      {.rows = norm.rows,
       .length = norm.length,
       .a = norm.input.data<std::byte>(),
       .b = norm.skip.data<std::byte>(),
       .scale = norm.gamma.data<std::byte>(),
       .scale_count = norm.length,
       .epsilon = norm.epsilon,
       .sum =
           norm.sum == nullptr ? nullptr : norm.sum->mutable_data<std::byte>(),
       .y = norm.y->mutable_data<std::byte>(),
       .factors = roots.empty() ? nullptr : roots.data()},
      threads));
  for (size_t row = 0; row < roots.size(); ++row)
    SetStatistics(norm, static_cast<int64_t>(row), 0, roots[row]);
  return absl::OkStatus();
}

}  // namespace

absl::Status SkipSimplifiedLayerNormalization(OpContext& op) {
  static const Tensor& absent = *new Tensor();
  ASSIGN_OR_RETURN(SkipNorm norm, OperandsOf(op, absent, op.input(3)));
  return op.ForType<ADDNORM_FLOAT_TYPES>(
      norm.input, [&]<typename T>() -> absl::Status {
        RETURN_IF_ERROR(MakeOutputs(op, norm));
        if (norm.rows == 0) return absl::OkStatus();
        constexpr ir::DataType kCompute = kTypeOf<ComputeType<T>>;
        ASSIGN_OR_RETURN(const AddRmsNorm kernel,
                         AddRmsNorm::Create(RecipeFrom(kCompute, kTypeOf<T>)));
        const bool is_plain =
            norm.bias.is_absent() && norm.skip_rows == norm.rows;
        if (is_plain && !kIsHalfType<T>)
          return RunFused(kernel, norm, op.threads());
        RowsOfSkipNorm<T> rows(norm);
        op.threads().ParallelFor(
            norm.rows, Grain(norm), [&](int64_t begin, int64_t end) {
              rows.ForEach(begin, end, [&](int64_t row, auto* x) {
                rows.RmsNorm(kernel, row, x, op.threads());
              });
            });
        return absl::OkStatus();
      });
}

absl::Status SkipLayerNormalization(OpContext& op) {
  ASSIGN_OR_RETURN(SkipNorm norm, OperandsOf(op, op.input(3), op.input(4)));
  return op.ForType<ADDNORM_FLOAT_TYPES>(
      norm.input, [&]<typename T>() -> absl::Status {
        RETURN_IF_ERROR(MakeOutputs(op, norm));
        if (norm.rows == 0) return absl::OkStatus();
        RowsOfSkipNorm<T> rows(norm);
        op.threads().ParallelFor(
            norm.rows, Grain(norm), [&](int64_t begin, int64_t end) {
              rows.ForEach(begin, end, [&](int64_t row, auto* x) {
                rows.LayerNorm(row, x);
              });
            });
        return absl::OkStatus();
      });
}

}  // namespace addnorm::runtime
