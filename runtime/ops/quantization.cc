// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
//
// Elements are converted, scaled and converted back in blocks, in double: the
// quotient or product of two floats rounded from double to float (or a half
// type) is what an operation of floats gives, so the precision that a model
// asks for is one rounding here.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "passes/ir/status_macros.h"
#include "runtime/element_cast.h"
#include "runtime/ops/groups.h"
#include "runtime/type_number.h"

namespace addnorm::runtime {
namespace {

using ir::DataType;

constexpr int64_t kBlock = 512;
constexpr int64_t kGrain = 8 * 1024;

// ---- which scale an element has

// Elements in a row and their scales: one scale for all, or one each.
struct ScaleRun {
  int64_t first = 0, step = 0, length = 0;
};

// Where the scales of a tensor are. The tensor is [outer, length, inner] around
// the axis; `block` neighbours along it share a scale.
struct ScaleLayout {
  enum class Kind { kTensor, kAxis, kBlocks };
  Kind kind = Kind::kTensor;
  int64_t length = 1, inner = 1, block = 1, blocks = 1;

  // The run of at most `limit` elements that starts at this one.
  ScaleRun At(int64_t element, int64_t limit) const {
    if (kind == Kind::kTensor) return {0, 0, limit};
    const int64_t within = element % inner;
    const int64_t along = element / inner % length;
    if (kind == Kind::kAxis && inner > 1)
      return {along, 0, std::min(limit, inner - within)};
    if (kind == Kind::kAxis) return {along, 1, std::min(limit, length - along)};
    const int64_t row = element / inner / length * blocks + along / block;
    if (inner > 1)
      return {row * inner + within, 1, std::min(limit, inner - within)};
    const int64_t rest = std::min(block - along % block, length - along);
    return {row, 0, std::min(limit, rest)};
  }
};

absl::Status LayAlongAxis(const Tensor& x, int64_t axis, ScaleLayout& layout) {
  if (axis < -x.rank() || axis >= x.rank())
    return OpContext::Invalid("axis {} of {} is out of range", axis,
                              Describe(x));
  if (axis < 0) axis += x.rank();
  layout.length = x.dims()[axis];
  for (int64_t i = axis + 1; i < x.rank(); ++i) layout.inner *= x.dims()[i];
  return absl::OkStatus();
}

// The scales' shape if x is quantised in blocks along the axis.
Dims BlockedDims(const Tensor& x, int64_t axis, int64_t block) {
  Dims dims = x.dims();
  int64_t& dim = dims[axis < 0 ? axis + x.rank() : axis];
  dim = dim / block + (dim % block != 0 ? 1 : 0);
  return dims;
}

absl::StatusOr<ScaleLayout> LayoutOf(const OpContext& op) {
  const Tensor& x = op.input(0);
  const Tensor& scale = op.input(1);
  const int64_t axis = op.attributes().Int("axis", 1);
  const int64_t block = op.attributes().Int("block_size", 0);
  if (block < 0) return OpContext::Invalid("block_size is {}", block);
  ScaleLayout layout;
  if (scale.rank() == 0 || (block == 0 && scale.count() == 1)) return layout;
  RETURN_IF_ERROR(LayAlongAxis(x, axis, layout));
  layout.kind =
      block == 0 ? ScaleLayout::Kind::kAxis : ScaleLayout::Kind::kBlocks;
  const Dims expected =
      block == 0 ? Dims{layout.length} : BlockedDims(x, axis, block);
  if (scale.dims() != expected) {
    return OpContext::Invalid("the scale of {} is {}, expected the shape {}",
                              Describe(x), Describe(scale), ToString(expected));
  }
  if (block > 0) {
    layout.block = block;
    layout.blocks = expected[axis < 0 ? axis + x.rank() : axis];
  }
  return layout;
}

// ---- operands

absl::StatusOr<std::vector<double>> Doubles(const Tensor& tensor) {
  ASSIGN_OR_RETURN(const ElementCast cast,
                   ElementCast::Create(tensor.type(), DataType::kDouble));
  std::vector<double> values(static_cast<size_t>(tensor.count()));
  cast.Run(tensor.data<std::byte>(), values.data(), tensor.count());
  return values;
}

// The zero points. Those of float8 types are none if all are zero, because
// adding 0 would make -0 to +0; ONNX's own data has -0 there, and for
// Float4E2M1 +0.
absl::StatusOr<std::vector<double>> ZeroPoints(const OpContext& op,
                                               DataType type) {
  if (!op.has_input(2)) return std::vector<double>();
  const Tensor& zero = op.input(2);
  if (zero.type() != type || zero.count() != op.input(1).count()) {
    return OpContext::Invalid("the zero point is {}, expected {}{}",
                              Describe(zero), ir::DataTypeName(type),
                              ToString(op.input(1).dims()));
  }
  ASSIGN_OR_RETURN(std::vector<double> points, Doubles(zero));
  const auto is_zero = [](double point) { return point == 0; };
  if (type != DataType::kFloat4E2M1 &&
      std::all_of(points.begin(), points.end(), is_zero))
    points.clear();
  return points;
}

// A type that an attribute names; `fallback` if it is 0 or absent.
absl::StatusOr<DataType> TypeAttribute(const OpContext& op,
                                       std::string_view name,
                                       DataType fallback) {
  const int64_t number = op.attributes().Int(name, 0);
  if (number == 0) return fallback;
  const auto type = static_cast<DataType>(number);
  if (number < 0 || number > 255 || ElementSize(type) == 0)
    return OpContext::Unsupported("{} is type {}", name,
                                  TypeNumberText(number));
  return type;
}

// What QuantizeLinear and DequantizeLinear share: conversions, scales, and the
// walk. `scaled` turns a run of doubles into what is stored, given the run's
// scales.
struct Conversion {
  ElementCast decode, encode;
  ScaleLayout layout;
  std::vector<double> scales, zeros;
};

template <typename F>
void Convert(OpContext& op, const Conversion& conversion, Tensor& y,
             const F& scaled) {
  const Tensor& x = op.input(0);
  const size_t x_size = ElementSize(x.type()), y_size = ElementSize(y.type());
  const auto convert_block = [&](int64_t first, int64_t count) {
    std::array<double, kBlock> values;
    conversion.decode.Run(x.data<std::byte>() + first * x_size, values.data(),
                          count);
    for (int64_t done = 0; done < count;) {
      const ScaleRun run = conversion.layout.At(first + done, count - done);
      scaled(std::span(values.data() + done, run.length), run);
      done += run.length;
    }
    conversion.encode.Run(values.data(),
                          y.mutable_data<std::byte>() + first * y_size, count);
  };
  op.threads().ParallelFor(x.count(), kGrain, [&](int64_t from, int64_t to) {
    for (int64_t at = from; at < to; at += kBlock)
      convert_block(at, std::min(kBlock, to - at));
  });
}

// `none` is what changes no number, zeros included: -0 added, 0 subtracted.
double ZeroAt(const Conversion& conversion, int64_t index, double none) {
  return conversion.zeros.empty() ? none : conversion.zeros[index];
}

// ---- QuantizeLinear

struct Range {
  double least, most;
};

// Of the integer types that a tensor can be quantised to.
std::optional<Range> QuantizedRange(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return Range{-128, 127};
    case DataType::kUint8:
      return Range{0, 255};
    case DataType::kInt16:
      return Range{-32768, 32767};
    case DataType::kUint16:
      return Range{0, 65535};
    case DataType::kInt4:
      return Range{-8, 7};
    case DataType::kUint4:
      return Range{0, 15};
    case DataType::kInt2:
      return Range{-2, 1};
    case DataType::kUint2:
      return Range{0, 3};
    default:
      return std::nullopt;
  }
}

double RoundedTo(DataType precision, double value) {
  switch (precision) {
    case DataType::kFloat:
      return static_cast<double>(static_cast<float>(value));
    case DataType::kFloat16:
      return static_cast<double>(Widen(CastElement<Half>(value)));
    case DataType::kBFloat16:
      return static_cast<double>(Widen(CastElement<BFloat16>(value)));
    default:
      return value;
  }
}

// The type in which x is divided by the scale. Those that are no arithmetic
// here divide as floats, int32 as double, which holds it.
absl::StatusOr<DataType> DivisionType(const OpContext& op) {
  ASSIGN_OR_RETURN(const DataType type,
                   TypeAttribute(op, "precision", op.input(1).type()));
  switch (type) {
    case DataType::kFloat:
    case DataType::kFloat16:
    case DataType::kBFloat16:
    case DataType::kDouble:
      return type;
    case DataType::kInt32:
      return DataType::kDouble;
    case DataType::kFloat8E8M0:
      return DataType::kFloat;
    default:
      return op.UnsupportedType(type);
  }
}

absl::StatusOr<DataType> QuantizedType(const OpContext& op) {
  const DataType fallback =
      op.has_input(2) ? op.input(2).type() : DataType::kUint8;
  ASSIGN_OR_RETURN(const DataType type,
                   TypeAttribute(op, "output_dtype", fallback));
  if (!QuantizedRange(type) && !IsSmallFloat(type))
    return op.UnsupportedType(type);
  return type;
}

// Half to even, and saturated; NaN is the zero point.
double Quantized(double quotient, double zero, const Range& range) {
  if (quotient != quotient) quotient = 0;
  return std::clamp(std::nearbyint(quotient) + zero, range.least, range.most);
}

absl::Status QuantizeLinear(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  ASSIGN_OR_RETURN(const DataType precision, DivisionType(op));
  ASSIGN_OR_RETURN(const DataType type, QuantizedType(op));
  const SmallFloatOptions options = {
      .saturate = op.attributes().Int("saturate", 1) != 0};
  Conversion conversion;
  ASSIGN_OR_RETURN(conversion.decode,
                   ElementCast::Create(x.type(), DataType::kDouble));
  ASSIGN_OR_RETURN(conversion.encode,
                   ElementCast::Create(DataType::kDouble, type, options));
  ASSIGN_OR_RETURN(conversion.layout, LayoutOf(op));
  ASSIGN_OR_RETURN(conversion.scales, Doubles(op.input(1)));
  ASSIGN_OR_RETURN(conversion.zeros, ZeroPoints(op, type));
  for (double& scale : conversion.scales) scale = RoundedTo(precision, scale);
  const std::optional<Range> range = QuantizedRange(type);
  const auto quantize = [&](std::span<double> values, const ScaleRun& run) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t at = run.first + static_cast<int64_t>(i) * run.step;
      const double zero = ZeroAt(conversion, at, -0.0);
      const double quotient = RoundedTo(
          precision, RoundedTo(precision, values[i]) / conversion.scales[at]);
      values[i] = range ? Quantized(quotient, zero, *range) : quotient + zero;
    }
  };
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, type, x.dims()));
  Convert(op, conversion, *y, quantize);
  return absl::OkStatus();
}

// ---- DequantizeLinear

// y = (x - zero point) * scale, exact in double and then rounded once (for
// int32 elements, of which double holds no product with a scale, twice).
absl::Status DequantizeLinear(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(2));
  const Tensor& x = op.input(0);
  const DataType scale_type = op.input(1).type();
  ASSIGN_OR_RETURN(
      const DataType type,
      TypeAttribute(
          op, "output_dtype",
          scale_type == DataType::kFloat8E8M0 ? DataType::kFloat : scale_type));
  if (!ir::IsFloat(type)) return op.UnsupportedType(type);
  Conversion conversion;
  ASSIGN_OR_RETURN(conversion.decode,
                   ElementCast::Create(x.type(), DataType::kDouble));
  ASSIGN_OR_RETURN(conversion.encode,
                   ElementCast::Create(DataType::kDouble, type));
  ASSIGN_OR_RETURN(conversion.layout, LayoutOf(op));
  ASSIGN_OR_RETURN(conversion.scales, Doubles(op.input(1)));
  ASSIGN_OR_RETURN(conversion.zeros, ZeroPoints(op, x.type()));
  const auto dequantize = [&](std::span<double> values, const ScaleRun& run) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t at = run.first + static_cast<int64_t>(i) * run.step;
      values[i] = Canonical((values[i] - ZeroAt(conversion, at, 0)) *
                            conversion.scales[at]);
    }
  };
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, type, x.dims()));
  Convert(op, conversion, *y, dequantize);
  return absl::OkStatus();
}

// ---- DynamicQuantizeLinear

struct DynamicScale {
  float scale = 1, zero = 0;
};

// So that the range of x, widened to hold 0, is that of uint8. NaN elements do
// not count, and the scale is 1 where all are zero or there are none.
DynamicScale ScaleOf(std::span<const float> x) {
  float least = 0, most = 0;
  for (const float value : x) {
    least = value < least ? value : least;
    most = value > most ? value : most;
  }
  DynamicScale dynamic;
  dynamic.scale = most == least ? 1.0f : (most - least) / 255.0f;
  const float zero = 0.0f - least / dynamic.scale;
  dynamic.zero = zero > 0 ? std::nearbyint(std::min(zero, 255.0f)) : 0.0f;
  return dynamic;
}

absl::Status DynamicQuantizeLinear(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  if (x.type() != DataType::kFloat) return op.UnsupportedType(x.type());
  const DynamicScale dynamic = ScaleOf(x.elements<float>());
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, DataType::kUint8, x.dims()));
  const Range range = *QuantizedRange(DataType::kUint8);
  op.threads().ParallelFor(x.count(), kGrain, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const float quotient = x.data<float>()[i] / dynamic.scale;
      const double quantized =
          Quantized(static_cast<double>(quotient),
                    static_cast<double>(dynamic.zero), range);
      y->mutable_data<uint8_t>()[i] = static_cast<uint8_t>(quantized);
    }
  });
  op.SetOutput(1, Tensor::Scalar<float>(dynamic.scale));
  op.SetOutput(2, Tensor::Scalar<uint8_t>(static_cast<uint8_t>(dynamic.zero)));
  return absl::OkStatus();
}

constexpr OpRow kRows[] = {
    {"", "DequantizeLinear", DequantizeLinear},
    {"", "DynamicQuantizeLinear", DynamicQuantizeLinear},
    {"", "QuantizeLinear", QuantizeLinear},
};

}  // namespace

OpTable QuantizationOps() { return kRows; }

}  // namespace addnorm::runtime
