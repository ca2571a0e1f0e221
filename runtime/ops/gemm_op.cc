// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The operator Gemm: y = alpha * a' · b' + beta * c.
#include <cmath>

#include "passes/ir/status_macros.h"
#include "runtime/ops/mat_mul.h"

namespace addnorm::runtime {
namespace {

absl::StatusOr<GemmShape> ShapeOf(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& a = op.input(0);
  const Tensor& b = op.input(1);
  if (a.rank() != 2 || b.rank() != 2 || a.type() != b.type())
    return OpContext::Invalid("operands are {} and {}, expected two matrices",
                              Describe(a), Describe(b));
  GemmShape shape;
  shape.transpose_a = op.attributes().Int("transA", 0) != 0;
  shape.transpose_b = op.attributes().Int("transB", 0) != 0;
  shape.m = a.dims()[shape.transpose_a ? 1 : 0];
  shape.k = a.dims()[shape.transpose_a ? 0 : 1];
  shape.n = b.dims()[shape.transpose_b ? 0 : 1];
  if (b.dims()[shape.transpose_b ? 1 : 0] != shape.k)
    return OpContext::Invalid("{} and {} do not match in the summed axis",
                              Describe(a), Describe(b));
  return shape;
}

// alpha or beta in the type of the computation.
template <typename A>
absl::StatusOr<A> Factor(const OpContext& op, std::string_view name) {
  const float value = op.attributes().Float(name, 1.0F);
  if constexpr (std::is_integral_v<A>) {
    // Up to 2^24 every integer is a float.
    if (value != std::floor(value) || !(std::fabs(value) <= 0x1p24F) ||
        (value < 0 && std::is_unsigned_v<A>)) {
      return OpContext::Unsupported("{} = {} is not supported for integers",
                                    name, value);
    }
  }
  return static_cast<A>(value);
}

template <typename T>
absl::StatusOr<ProductTerms<T>> TermsOf(const OpContext& op,
                                        const GemmShape& shape) {
  using A = ComputeType<T>;
  ProductTerms<T> terms;
  ASSIGN_OR_RETURN(terms.alpha, Factor<A>(op, "alpha"));
  ASSIGN_OR_RETURN(terms.beta, Factor<A>(op, "beta"));
  // As beta = 0 in BLAS: c is not read, so its NaN do not matter.
  if (!op.has_input(2) || terms.beta == A{0}) return terms;
  const Tensor& c = op.input(2);
  Dims dims = c.dims();
  if (dims.size() < 2) dims.insert(dims.begin(), 2 - dims.size(), 1);
  if (c.type() != op.input(0).type() || dims.size() > 2 ||
      (dims[0] != 1 && dims[0] != shape.m) ||
      (dims[1] != 1 && dims[1] != shape.n)) {
    return OpContext::Invalid("c is {}, which does not broadcast to [{},{}]",
                              Describe(c), shape.m, shape.n);
  }
  terms.c = c.data<T>();
  terms.c_row = dims[0] == 1 ? 0 : dims[1];
  terms.c_column = dims[1] == 1 ? 0 : 1;
  return terms;
}

}  // namespace

absl::Status GemmOp(OpContext& op) {
  ASSIGN_OR_RETURN(const GemmShape shape, ShapeOf(op));
  const Tensor& a = op.input(0);
  return op.ForType<ADDNORM_FLOAT_TYPES, int32_t, int64_t, uint32_t,
                    uint64_t>(a, [&]<typename T>() -> absl::Status {
    ASSIGN_OR_RETURN(const ProductTerms<T> terms, TermsOf<T>(op, shape));
    ASSIGN_OR_RETURN(Tensor * y, op.Output(0, a.type(), {shape.m, shape.n}));
    return MatrixProduct<T>(shape, a.data<T>(), op.input(1).data<T>(),
                            y->mutable_data<T>(), terms, op.threads());
  });
}

}  // namespace addnorm::runtime
