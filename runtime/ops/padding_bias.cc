// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/padding_bias.h"

#include "passes/ir/status_macros.h"

namespace addnorm::runtime {
namespace {

// The dims of the bias; empty if the mask has none of the known shapes.
Dims BiasDims(const Dims& mask, const AttentionShape& shape) {
  if (mask == Dims{shape.batch} || mask == Dims{shape.batch, shape.kv_rows})
    return {shape.batch, 1, 1, shape.kv_rows};
  if (mask == Dims{shape.batch, shape.q_rows, shape.kv_rows})
    return {shape.batch, 1, shape.q_rows, shape.kv_rows};
  return {};
}

}  // namespace

absl::StatusOr<Tensor> PaddingBias(OpContext& op, const Tensor& mask,
                                   const AttentionShape& shape) {
  const Dims dims = BiasDims(mask.dims(), shape);
  if (dims.empty()) {
    return OpContext::Unsupported(
        "the mask {} is none of [{}], [{},{}], [{},{},{}]", Describe(mask),
        shape.batch, shape.batch, shape.kv_rows, shape.batch, shape.q_rows,
        shape.kv_rows);
  }
  const float filter = op.attributes().Float("mask_filter_value", -10000.0F);
  ASSIGN_OR_RETURN(Tensor bias, op.Scratch(ir::DataType::kFloat, dims));
  float* to = bias.mutable_data<float>();
  const bool lengths = mask.rank() == 1;
  RETURN_IF_ERROR((op.ForType<int32_t, int64_t>(mask, [&]<typename M>() {
    const M* values = mask.data<M>();
    for (int64_t i = 0; i < bias.count(); ++i) {
      const bool token = lengths ? i % shape.kv_rows < values[i / shape.kv_rows]
                                 : values[i] != 0;
      to[i] = token ? 0 : filter;
    }
  })));
  return bias;
}

}  // namespace addnorm::runtime
