// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/rms_norm_variants.h"

namespace addnorm::passes {
namespace {

// Free names in a row: the rule's operand (x, ms or mse), and the roles
//   scale           the norm's weight, an operand of the fused op
//   row_scale       the same, where a constant of one element is no weight
//   epsilon         a constant of one element
//   length          a constant, the length of the last axis
//   inverse_length  a constant, 1 / length
// `axes = [-1]` and `axis = -1` stand for the last axis however it is written,
// `rank = 3` for an operand of known rank 3, `value = 1` for a fill with ones.
// A Constant stands for one element of that value, of any type and shape; an
// Identity for no node at all.
constexpr VariantRow kRows[] = {
    // ---- norm: x -> y, the whole of it
    {.rule = "norm",
     .name = "multiply",
     .tag = "",
     .recipe = "y = (x * r) * w",
     .seen_in =
         "torch exporters: Llama, Mistral, Qwen, Phi-3, Gemma, T5, OLMo2",
     .text = R"(
       ms = rule.mean(x)
       mse = rule.epsilon(ms)
       r = rule.inverse(mse)
       n = Mul(x, r)
       y = Mul(n, scale))"},
    {.rule = "norm",
     .name = "divide",
     .tag = "div_sqrt",
     .recipe = "y = (x / sqrt(mse)) * w",
     .seen_in = "optimum's rms_norm patch, Olive, body of RMSNormalization-23, "
                "jax2onnx",
     .text = R"(
       ms = rule.mean(x)
       mse = rule.epsilon(ms)
       rms = Sqrt(mse)
       n = Div(x, rms)
       y = Mul(n, scale))"},
    {.rule = "norm",
     .name = "unit_scale",
     .tag = "rms_normalization_unscaled",
     .recipe = "y = RMSNormalization(x, ones)",
     .seen_in = "torch dynamo's rms_norm without weight at opset 23",
     .text = R"(
       shape = Shape(x)
       ones = ConstantOfShape<value = 1>(shape)
       y = RMSNormalization<axis = -1>(x, ones))"},
    {.rule = "norm",
     .name = "rms_normalization",
     .tag = "rms_normalization",
     .recipe = "y = RMSNormalization(x, w)",
     .seen_in = "torch dynamo at opset 23, mobius, onnxsim",
     .text = "y = RMSNormalization<axis = -1>(x, scale)"},
    {.rule = "norm",
     .name = "simplified_layer_normalization",
     .tag = "simplified_layer_normalization",
     .recipe = "y = SimplifiedLayerNormalization(x, w)",
     .seen_in = "genai builder, saved graphs of ONNX Runtime, onnxscript",
     .text = "y = SimplifiedLayerNormalization<axis = -1>(x, scale)"},
    {.rule = "norm",
     .name = "scale_then_multiply",
     .tag = "scaled_first",
     .recipe = "y = (x * w) * r",
     .seen_in = "tf2onnx, jax2onnx, hand-written norms",
     .text = R"(
       ms = rule.mean(x)
       mse = rule.epsilon(ms)
       r = rule.inverse(mse)
       v = Mul(x, scale)
       y = Mul(v, r))"},
    {.rule = "norm",
     .name = "scale_then_divide",
     .tag = "scaled_first_div_sqrt",
     .recipe = "y = (x * w) / sqrt(mse)",
     .seen_in = "jax2onnx, hand-written norms",
     .text = R"(
       ms = rule.mean(x)
       mse = rule.epsilon(ms)
       rms = Sqrt(mse)
       v = Mul(x, scale)
       y = Div(v, rms))"},
    {.rule = "norm",
     .name = "scaled_inverse",
     .tag = "scaled_inverse",
     .recipe = "y = x * (r * w)",
     .seen_in = "tf2onnx (TensorFlow's moments), spox",
     .text = R"(
       ms = rule.mean(x)
       mse = rule.epsilon(ms)
       r = rule.inverse(mse)
       rw = Mul(r, row_scale)
       y = Mul(x, rw))"},
    {.rule = "norm",
     .name = "multiply_unscaled",
     .tag = "unscaled",
     .recipe = "y = x * r",
     .seen_in = "norms without a weight, two weights on one norm",
     .text = R"(
       ms = rule.mean(x)
       mse = rule.epsilon(ms)
       r = rule.inverse(mse)
       y = Mul(x, r))"},
    {.rule = "norm",
     .name = "divide_unscaled",
     .tag = "div_sqrt_unscaled",
     .recipe = "y = x / sqrt(mse)",
     .seen_in = "norms without a weight, two weights on one norm",
     .text = R"(
       ms = rule.mean(x)
       mse = rule.epsilon(ms)
       rms = Sqrt(mse)
       y = Div(x, rms))"},

    // ---- mean: x -> ms, the mean of squares over the last axis
    {.rule = "mean",
     .name = "reduce_mean",
     .tag = "",
     .recipe = "ms = sum(sq) / n",
     .seen_in = "all exporters",
     .text = R"(
       sq = rule.square(x)
       ms = ReduceMean<axes = [-1], keepdims = 1>(sq))"},
    {.rule = "mean",
     .name = "sum_of_squares",
     .tag = "sum_of_squares",
     .recipe = "ms = sum(x * x) / n",
     .seen_in = "hand-written norms",
     .text = R"(
       ss = ReduceSumSquare<axes = [-1], keepdims = 1>(x)
       ms = Div(ss, length))"},
    {.rule = "mean",
     .name = "sum_of_squares_scaled",
     .tag = "sum_of_squares_scaled",
     .recipe = "ms = sum(x * x) * (1 / n)",
     .seen_in = "hand-written norms",
     .text = R"(
       ss = ReduceSumSquare<axes = [-1], keepdims = 1>(x)
       ms = Mul(ss, inverse_length))"},
    {.rule = "mean",
     .name = "sum",
     .tag = "sum",
     .recipe = "ms = sum(sq) / n",
     .seen_in = "hand-written norms, jax's mean",
     .text = R"(
       sq = rule.square(x)
       total = ReduceSum<axes = [-1], keepdims = 1>(sq)
       ms = Div(total, length))"},
    {.rule = "mean",
     .name = "sum_scaled",
     .tag = "sum_scaled",
     .recipe = "ms = sum(sq) * (1 / n)",
     .seen_in = "hand-written norms",
     .text = R"(
       sq = rule.square(x)
       total = ReduceSum<axes = [-1], keepdims = 1>(sq)
       ms = Mul(total, inverse_length))"},
    {.rule = "mean",
     .name = "global_average_pool",
     .tag = "pool",
     .recipe = "ms = sum(sq) / n",
     .seen_in = "tf2onnx up to opset 17",
     .text = R"(
       sq = rule.square(x)
       ms = GlobalAveragePool<rank = 3>(sq))"},

    // ---- square: x -> sq
    {.rule = "square",
     .name = "pow",
     .tag = "",
     .recipe = "sq = x * x",
     .seen_in = "torch exporters",
     .text = R"(
       two = Constant<value_float = 2.0>()
       sq = Pow(x, two))"},
    {.rule = "square",
     .name = "mul",
     .tag = "mul",
     .recipe = "sq = x * x",
     .seen_in = "optimum's rms_norm patch, body of RMSNormalization-23, "
                "jax2onnx, tf2onnx",
     .text = "sq = Mul(x, x)"},

    // ---- epsilon: ms -> mse
    {.rule = "epsilon",
     .name = "add",
     .tag = "",
     .recipe = "mse = ms + epsilon",
     .seen_in = "all exporters",
     .text = "mse = Add(ms, epsilon)"},
    {.rule = "epsilon",
     .name = "none",
     .tag = "no_epsilon",
     .recipe = "mse = ms",
     .seen_in = "torch dynamo for epsilon up to 1e-8, which its optimiser "
                "drops: Helium, Moshi",
     .text = "mse = Identity(ms)"},

    {.rule = "epsilon",
     .name = "add_after_times_one",
     .tag = "times_one_epsilon",
     .recipe = "mse = ms * 1 + epsilon",
     .seen_in = "paddle2onnx, where adding a number is an op that also scales",
     .text = R"(
       one = Constant<value_float = 1.0>()
       v = Mul(ms, one)
       mse = Add(v, epsilon))"},

    // ---- inverse: mse -> r
    {.rule = "inverse",
     .name = "one_div_sqrt",
     .tag = "one_div_sqrt",
     .recipe = "r = 1 / sqrt(mse)",
     .seen_in = "TorchScript's rsqrt, genai TRT-RTX",
     .text = R"(
       one = Constant<value_float = 1.0>()
       rms = Sqrt(mse)
       r = Div(one, rms))"},
    {.rule = "inverse",
     .name = "reciprocal",
     .tag = "reciprocal",
     .recipe = "r = 1 / sqrt(mse)",
     .seen_in = "torch dynamo's rsqrt",
     .text = R"(
       rms = Sqrt(mse)
       r = Reciprocal(rms))"},
    {.rule = "inverse",
     .name = "pow_minus_half",
     .tag = "pow_minus_half",
     .recipe = "r = mse ^ -0.5",
     .seen_in = "hand-written norms, by both torch exporters",
     .text = R"(
       minus_half = Constant<value_float = -0.5>()
       r = Pow(mse, minus_half))"},
    {.rule = "inverse",
     .name = "reciprocal_times_one",
     .tag = "reciprocal_times_one",
     .recipe = "r = (1 / sqrt(mse)) * 1",
     .seen_in = "TorchScript's 1.0 / torch.sqrt(v)",
     .text = R"(
       rms = Sqrt(mse)
       inverse = Reciprocal(rms)
       one = Constant<value_float = 1.0>()
       r = Mul(inverse, one))"},
};

}  // namespace

std::span<const VariantRow> RmsNormVariants() { return kRows; }

}  // namespace addnorm::passes
