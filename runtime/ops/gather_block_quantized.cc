// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// com.microsoft GatherBlockQuantized: Gather of quantised rows, made floats.
// Data are int4 or uint4 tensors, or uint8 with 2, 4 or 8 bits a value packed
// along the last axis. As in ONNX Runtime, an index out of range gives zeros.
//
// Roundings: (value - zero point) * scale in float, then once to the scales'
// type.
#include <algorithm>

#include "passes/ir/status_macros.h"
#include "runtime/grain.h"
#include "runtime/ops/attention_ops.h"
#include "runtime/ops/packed_bits.h"

namespace addnorm::runtime {
namespace {

enum Operand : size_t { kData, kIndices, kScales, kZeroPoints };

struct BlockGather {
  bool packed = false;  // uint8 data
  int64_t bits = 4, block = 128;
  int64_t gather_axis = 0, quantize_axis = 0;
  Dims dims;  // of the data, in values
  Dims output;
  int64_t outer = 1, inner = 1;  // around the gathered axis
  // Of the quantised axis: values before the next value, the axis, its blocks.
  int64_t step = 1, length = 1, blocks = 1;
};

absl::StatusOr<int64_t> Axis(const OpContext& op, const char* name,
                             int64_t fallback, int64_t rank) {
  const int64_t axis = op.attributes().Int(name, fallback);
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return OpContext::Invalid("{} is {}, with data of rank {}", name, axis, rank);
}

absl::Status ReadAttributes(const OpContext& op, BlockGather& g) {
  const Tensor& data = op.input(kData);
  g.packed = data.type() == ir::DataType::kUint8;
  if (!g.packed && data.type() != ir::DataType::kInt4 &&
      data.type() != ir::DataType::kUint4)
    return op.UnsupportedType(data.type());
  g.bits = op.attributes().Int("bits", 4);
  g.block = op.attributes().Int("block_size", 128);
  ASSIGN_OR_RETURN(g.gather_axis, Axis(op, "gather_axis", 0, data.rank()));
  ASSIGN_OR_RETURN(g.quantize_axis, Axis(op, "quantize_axis", 1, data.rank()));
  if (!IsBlockSize(g.block))
    return OpContext::Invalid("block_size is {}", g.block);
  if (g.packed && !IsPackedWidth(g.bits))
    return OpContext::Unsupported("bits {} is not supported", g.bits);
  if (g.packed && (g.gather_axis != 0 || g.quantize_axis != data.rank() - 1 ||
                   g.gather_axis == g.quantize_axis)) {
    return OpContext::Unsupported(
        "uint8 data gathered along axis {} and quantised along axis {}",
        g.gather_axis, g.quantize_axis);
  }
  return absl::OkStatus();
}

absl::Status CheckScales(const OpContext& op, const BlockGather& g) {
  const Tensor& scales = op.input(kScales);
  Dims expected = g.dims;
  expected[g.quantize_axis] = g.blocks;
  if (scales.dims() != expected)
    return OpContext::Invalid("the scales are {}, expected {}",
                              Describe(scales), ToString(expected));
  if (!op.has_input(kZeroPoints)) return absl::OkStatus();
  const Tensor& points = op.input(kZeroPoints);
  if (g.packed) expected.back() = (expected.back() * g.bits + 7) / 8;
  if (points.dims() != expected || points.type() != op.input(kData).type())
    return OpContext::Invalid("the zero points are {}, expected {}",
                              Describe(points), ToString(expected));
  return absl::OkStatus();
}

absl::StatusOr<BlockGather> ReadGather(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(3));
  BlockGather g;
  RETURN_IF_ERROR(ReadAttributes(op, g));
  g.dims = op.input(kData).dims();
  if (g.packed &&
      __builtin_mul_overflow(g.dims.back(), 8 / g.bits, &g.dims.back()))
    return OpContext::Invalid("the data {} are too large",
                              Describe(op.input(kData)));
  g.length = g.dims[g.quantize_axis];
  g.blocks = g.length / g.block + (g.length % g.block == 0 ? 0 : 1);
  RETURN_IF_ERROR(CheckScales(op, g));
  g.output.assign(g.dims.begin(), g.dims.begin() + g.gather_axis);
  const Dims& indices = op.input(kIndices).dims();
  g.output.insert(g.output.end(), indices.begin(), indices.end());
  g.output.insert(g.output.end(), g.dims.begin() + g.gather_axis + 1,
                  g.dims.end());
  if (ElementCount(g.output).value_or(0) == 0) return g;
  for (int64_t i = 0; i < std::ssize(g.dims); ++i) {
    if (i < g.gather_axis) g.outer *= g.dims[i];
    if (i > g.gather_axis) g.inner *= g.dims[i];
    if (i > g.quantize_axis) g.step *= g.dims[i];
  }
  return g;
}

template <typename T>
class Dequantiser {
 public:
  Dequantiser(const OpContext& op, const BlockGather& g) : op_(op), g_(g) {}

  // to[0 .. inner) = values `from` .. of the data.
  void Slice(int64_t from, T* to) const {
    int64_t done = 0;
    while (done < g_.inner) {
      // Values that share a scale: the rest of a block, or one of them.
      const int64_t at = (from + done) / g_.step;
      const int64_t place = at % g_.length;
      const int64_t rest =
          std::min(g_.block - place % g_.block, g_.length - place);
      const int64_t run = g_.step == 1 ? std::min(rest, g_.inner - done) : 1;
      const int64_t scale =
          (at / g_.length * g_.blocks + place / g_.block) * g_.step +
          (from + done) % g_.step;
      Run(from + done, run, scale, to + done);
      done += run;
    }
  }

 private:
  void Run(int64_t from, int64_t count, int64_t scale_at, T* to) const {
    const float scale = Widen(op_.input(kScales).data<T>()[scale_at]);
    const float zero = static_cast<float>(ZeroPoint(scale_at));
    for (int64_t i = 0; i < count; ++i)
      to[i] = Rounded<T>((static_cast<float>(Value(from + i)) - zero) * scale);
  }

  // Of data or zero points: value i, where packed rows have `width` values.
  int Element(const Tensor& tensor, int64_t i, int64_t width) const {
    if (tensor.type() == ir::DataType::kInt4) return tensor.data<int8_t>()[i];
    const uint8_t* bytes = tensor.data<uint8_t>();
    if (!g_.packed) return bytes[i];
    const int64_t row_bytes = (width * g_.bits + 7) / 8;
    return PackedValue(bytes + i / width * row_bytes, i % width, g_.bits);
  }
  int Value(int64_t i) const { return Element(op_.input(kData), i, g_.length); }
  int ZeroPoint(int64_t i) const {
    if (op_.has_input(kZeroPoints))
      return Element(op_.input(kZeroPoints), i, g_.blocks);
    return g_.packed ? 1 << (g_.bits - 1) : 0;
  }

  const OpContext& op_;
  const BlockGather& g_;
};

template <typename T>
absl::Status RunTyped(OpContext& op, const BlockGather& g) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> indices, op.Ints(kIndices));
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, kTypeOf<T>, g.output));
  if (y->count() == 0) return absl::OkStatus();
  T* const data = y->mutable_data<T>();
  const Dequantiser<T> dequantiser(op, g);
  const int64_t count = std::ssize(indices), axis = g.dims[g.gather_axis];
  op.threads().ParallelFor(
      g.outer * count, LineGrain(g.inner), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          int64_t index = indices[static_cast<size_t>(i % count)];
          if (index < 0) index += axis;
          if (index < 0 || index >= axis) {
            std::fill_n(data + i * g.inner, g.inner, T{});
          } else {
            dequantiser.Slice((i / count * axis + index) * g.inner,
                              data + i * g.inner);
          }
        }
      });
  return absl::OkStatus();
}

}  // namespace

absl::Status GatherBlockQuantized(OpContext& op) {
  ASSIGN_OR_RETURN(const BlockGather gather, ReadGather(op));
  return op.ForType<float, Half, BFloat16>(
      op.input(kScales), [&]<typename T>() { return RunTyped<T>(op, gather); });
}

}  // namespace addnorm::runtime
