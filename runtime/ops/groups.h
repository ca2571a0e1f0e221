// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of ops, one a file of this folder. op_table.cc lists them.
#ifndef ADDNORM_RUNTIME_OPS_GROUPS_H_
#define ADDNORM_RUNTIME_OPS_GROUPS_H_

#include "runtime/op.h"

namespace addnorm::runtime {

OpTable ActivationOps();     // Relu, Sigmoid, Gelu, SwiGLU, …
OpTable ArithmeticOps();     // Add, Sub, Mul, Div, Mod, Pow
OpTable AttentionOps();      // Attention and its contrib relatives
OpTable BitwiseOps();        // BitwiseAnd, BitShift, …
OpTable CastOps();           // Cast, CastLike, BitCast
OpTable ContribOps();        // com.microsoft, and its ops of the default domain
OpTable ControlFlowOps();    // If, Loop, Scan
OpTable ConvolutionOps();    // Conv, CausalConvWithState, pooling
OpTable CreationOps();       // Constant, Range, EyeLike, OneHot, …
OpTable IndexingOps();       // Gather, Scatter, Slice, TopK, NonZero, …
OpTable LogicOps();          // comparisons, And, Or, Not, Where, IsNaN, …
OpTable MatMulOps();         // MatMul, Gemm, Einsum
OpTable NormalizationOps();  // Softmax, LayerNormalization, RMSNormalization, …
OpTable QuantizationOps();  // QuantizeLinear, MatMulInteger, …
OpTable ReductionOps();     // ReduceSum, ArgMax, CumSum, …
OpTable RmsNormOps();       // RMSNormalization and its contrib relatives
OpTable ShapeOps();         // Reshape, Transpose, Concat, Split, Pad, …
OpTable UnaryOps();         // Exp, Tanh, Clip, Identity, …
OpTable VariadicOps();      // Max, Min, Sum, Mean

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_GROUPS_H_
