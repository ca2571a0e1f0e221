// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft MatMulNBits: y = a · weightsᵀ + bias, where the weights are
// quantised in blocks along their rows.
//
// A panel of rows of weights is made floats at a time, never all of them.
// Roundings: weights (value - zero point) * scale in float, products and sums
// in float, then the bias, then once to the type of a. accuracy_level is
// ignored: it permits ONNX Runtime to quantise a too, which is never done here.
// Order of sums: 16 lanes, or Gemm's where the product is large; by shapes
// alone.
#include <algorithm>

#include "passes/ir/status_macros.h"
#include "runtime/gemm.h"
#include "runtime/ops/attention_core.h"
#include "runtime/ops/attention_ops.h"
#include "runtime/ops/packed_bits.h"
#include "runtime/ops/widened.h"

namespace addnorm::runtime {
namespace {

enum Operand : size_t { kA, kB, kScales, kZeroPoints, kGroups, kBias };

// Rows of weights that are floats at once.
constexpr int64_t kPanel = 32;

struct Product {
  int64_t rows = 0, n = 0, k = 0;
  int64_t bits = 4, block = 0, blocks = 0;
  int64_t block_bytes() const { return block / 8 * bits; }
  bool omitted = false;  // weights of no elements stand for zeros
};

absl::Status ReadSizes(const OpContext& op, Product& p) {
  const Attributes& attributes = op.attributes();
  p.k = attributes.Int("K", -1);
  p.n = attributes.Int("N", -1);
  p.bits = attributes.Int("bits", 4);
  p.block = attributes.Int("block_size", 0);
  if (attributes.Int("weight_prepacked", 0) != 0)
    return OpContext::Unsupported("weight_prepacked is not supported");
  if (op.has_input(kGroups))
    return OpContext::Unsupported("g_idx is not supported");
  if (!IsPackedWidth(p.bits))
    return OpContext::Unsupported("bits {} is not supported", p.bits);
  // Sizes that keep all products below in range.
  constexpr int64_t kLargest = int64_t{1} << 40;
  if (p.k < 0 || p.n < 0 || p.k > kLargest || p.n > kLargest ||
      !IsBlockSize(p.block)) {
    return OpContext::Invalid("K is {}, N {} and block_size {}", p.k, p.n,
                              p.block);
  }
  p.blocks = (p.k + p.block - 1) / p.block;
  return absl::OkStatus();
}

absl::Status CheckZeroPoints(const OpContext& op, const Product& p) {
  if (!op.has_input(kZeroPoints)) return absl::OkStatus();
  const Tensor& points = op.input(kZeroPoints);
  const bool packed = points.type() == ir::DataType::kUint8;
  if (!packed && points.type() != op.input(kA).type())
    return OpContext::Unsupported("zero points {} are not supported",
                                  Describe(points));
  const int64_t width = packed ? (p.blocks * p.bits + 7) / 8 : p.blocks;
  const std::optional<int64_t> count = ElementCount({p.n, width});
  if (points.count() == count) return absl::OkStatus();
  return OpContext::Invalid("zero points {} are given, expected [{},{}]",
                            Describe(points), p.n, width);
}

absl::Status CheckWeights(const OpContext& op, Product& p) {
  const Tensor& b = op.input(kB);
  if (b.type() != ir::DataType::kUint8) return op.UnsupportedType(b.type());
  p.omitted = b.count() == 0;
  if (p.omitted) return absl::OkStatus();
  const Dims expected = {p.n, p.blocks, p.block_bytes()};
  const std::optional<int64_t> scales = ElementCount({p.n, p.blocks});
  if (b.count() != ElementCount(expected) || b.dims()[0] != p.n) {
    return OpContext::Invalid("the weights are {}, expected {}", Describe(b),
                              ToString(expected));
  }
  if (op.input(kScales).type() != op.input(kA).type() ||
      op.input(kScales).count() != scales) {
    return OpContext::Invalid("the scales are {}, expected [{},{}] of type {}",
                              Describe(op.input(kScales)), p.n, p.blocks,
                              ir::DataTypeName(op.input(kA).type()));
  }
  return CheckZeroPoints(op, p);
}

absl::StatusOr<Product> ReadProduct(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(3));
  Product p;
  RETURN_IF_ERROR(ReadSizes(op, p));
  const Tensor& a = op.input(kA);
  if (a.rank() < 1 || a.dims().back() != p.k)
    return OpContext::Invalid("the input {} does not end in K = {}",
                              Describe(a), p.k);
  const std::optional<int64_t> rows =
      ElementCount(Dims(a.dims().begin(), a.dims().end() - 1));
  if (!rows)
    return OpContext::Invalid("the input {} is too large", Describe(a));
  p.rows = *rows;
  RETURN_IF_ERROR(CheckWeights(op, p));
  const bool biased = op.has_input(kBias);
  if (biased &&
      (op.input(kBias).count() != p.n || op.input(kBias).type() != a.type())) {
    return OpContext::Invalid("the bias is {}, expected [{}]",
                              Describe(op.input(kBias)), p.n);
  }
  return p;
}

template <typename T>
class PanelRunner {
 public:
  PanelRunner(OpContext& op, const Product& p, const float* a, T* y)
      : op_(op), p_(p), a_(a), y_(y) {}

  absl::Status Allocate() {
    const Dims dims[] = {{kPanel, p_.omitted ? 0 : p_.k},
                         {p_.rows, std::min(kPanel, p_.n)}};
    ASSIGN_OR_RETURN(weights_, op_.Scratch(ir::DataType::kFloat, dims[0]));
    ASSIGN_OR_RETURN(sums_, op_.Scratch(ir::DataType::kFloat, dims[1]));
    return absl::OkStatus();
  }

  // y[:, first .. first + kPanel)
  absl::Status Run(int64_t first) {
    const int64_t count = std::min(kPanel, p_.n - first);
    RETURN_IF_ERROR(Multiply(first, count));
    const T* bias =
        op_.has_input(kBias) ? op_.input(kBias).data<T>() + first : nullptr;
    const float* sums = sums_.data<float>();
    for (int64_t row = 0; row < p_.rows; ++row) {
      for (int64_t i = 0; i < count; ++i) {
        float sum = sums[row * count + i];
        if (bias != nullptr) sum += Widen(bias[i]);
        y_[row * p_.n + first + i] = Rounded<T>(sum);
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Multiply(int64_t first, int64_t count) {
    float* sums = sums_.mutable_data<float>();
    if (p_.omitted) {
      std::fill_n(sums, p_.rows * count, 0.0F);
      return absl::OkStatus();
    }
    float* weights = weights_.mutable_data<float>();
    for (int64_t i = 0; i < count; ++i)
      Dequantise(first + i, weights + i * p_.k);
    if (IsWorthGemm(p_.rows, count, p_.k)) {
      return Gemm({.m = p_.rows, .n = count, .k = p_.k, .transpose_b = true},
                  a_, weights, sums, op_.threads());
    }
    for (int64_t row = 0; row < p_.rows; ++row) {
      for (int64_t i = 0; i < count; ++i)
        sums[row * count + i] = Dot(a_ + row * p_.k, weights + i * p_.k, p_.k);
    }
    return absl::OkStatus();
  }

  float ZeroPoint(int64_t row, int64_t block) const {
    if (!op_.has_input(kZeroPoints))
      return static_cast<float>(1 << (p_.bits - 1));
    const Tensor& points = op_.input(kZeroPoints);
    if (points.type() != ir::DataType::kUint8)
      return Widen(points.data<T>()[row * p_.blocks + block]);
    const int64_t row_bytes = (p_.blocks * p_.bits + 7) / 8;
    return static_cast<float>(
        PackedValue(points.data<uint8_t>() + row * row_bytes, block, p_.bits));
  }

  void Dequantise(int64_t row, float* to) const {
    for (int64_t block = 0; block < p_.blocks; ++block) {
      const int64_t index = row * p_.blocks + block;
      const int64_t from = block * p_.block;
      UnpackBlock(p_.bits,
                  op_.input(kB).data<uint8_t>() + index * p_.block_bytes(),
                  std::min(p_.block, p_.k - from), ZeroPoint(row, block),
                  Widen(op_.input(kScales).data<T>()[index]), to + from);
    }
  }

  OpContext& op_;
  const Product& p_;
  const float* const a_;
  T* const y_;
  Tensor weights_, sums_;
};

template <typename T>
absl::Status RunTyped(OpContext& op, const Product& p) {
  const Tensor& a = op.input(kA);
  Dims dims = a.dims();
  dims.back() = p.n;
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, kTypeOf<T>, dims));
  if (y->count() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor wide, Widened<T>(op, a));
  const float* const left = wide.data<float>();
  const auto run = [&](int64_t begin, int64_t end) {
    PanelRunner<T> runner(op, p, left, y->mutable_data<T>());
    RETURN_IF_ERROR(runner.Allocate());
    for (int64_t i = begin; i < end; ++i)
      RETURN_IF_ERROR(runner.Run(i * kPanel));
    return absl::OkStatus();
  };
  return op.threads().TryParallelFor((p.n + kPanel - 1) / kPanel, 1, run);
}

}  // namespace

absl::Status MatMulNBits(OpContext& op) {
  ASSIGN_OR_RETURN(const Product product, ReadProduct(op));
  return op.ForType<float, Half, BFloat16>(
      op.input(kA), [&]<typename T>() { return RunTyped<T>(op, product); });
}

}  // namespace addnorm::runtime
