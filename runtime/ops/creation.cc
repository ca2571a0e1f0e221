// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops that make tensors from attributes, shapes or bounds.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/groups.h"
#include "runtime/ops/strided_copy.h"
#include "runtime/weights.h"

namespace addnorm::runtime {
namespace {

absl::Status Constant(OpContext& op) {
  const Attributes& attributes = op.attributes();
  if (const ir::Tensor* value = attributes.Tensor("value")) {
    ASSIGN_OR_RETURN(Tensor tensor, op.weights().Get(*value));
    op.SetOutput(0, std::move(tensor));
  } else if (attributes.Has("value_float")) {
    op.SetOutput(0, Tensor::Scalar(attributes.Float("value_float", 0)));
  } else if (attributes.Has("value_int")) {
    op.SetOutput(0, Tensor::Scalar(attributes.Int("value_int", 0)));
  } else if (const auto floats = attributes.Floats("value_floats")) {
    op.SetOutput(0, Tensor::Vector(*floats));
  } else if (const auto ints = attributes.Ints("value_ints")) {
    op.SetOutput(0, Tensor::Vector(*ints));
  } else if (attributes.Has("sparse_value") || attributes.Has("value_string") ||
             attributes.Has("value_strings")) {
    return OpContext::Unsupported("sparse tensors and strings");
  } else {
    return OpContext::Invalid("has no value");
  }
  return absl::OkStatus();
}

absl::Status ConstantOfShape(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  ASSIGN_OR_RETURN(const Dims dims, op.Ints(0));
  Tensor value = Tensor::Scalar(0.0f);
  if (const ir::Tensor* given = op.attributes().Tensor("value")) {
    ASSIGN_OR_RETURN(value, op.weights().Get(*given));
  }
  if (value.count() != 1) {
    return OpContext::Invalid("the value is {}, expected one element",
                              Describe(value));
  }
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, value.type(), dims));
  Fill(op.threads(), y->mutable_data<std::byte>(), y->count(),
       value.data<std::byte>(), ElementBytes(value));
  return absl::OkStatus();
}

// Elements of a Range, none if it would never end.
template <typename T>
std::optional<int64_t> RangeCount(T start, T limit, T delta) {
  if (delta == T{}) return std::nullopt;
  if constexpr (std::is_integral_v<T>) {
    if (delta > 0 ? start >= limit : start <= limit) return 0;
    // Unsigned: bounds may be further apart than the type's greatest number.
    const auto distance = [](T from, T to) {
      return static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
    };
    const uint64_t span =
        delta > 0 ? distance(start, limit) : distance(limit, start);
    const uint64_t step = delta > 0 ? distance(0, delta) : distance(delta, 0);
    return static_cast<int64_t>((span - 1) / step + 1);
  } else {
    const double count =
        std::ceil((static_cast<double>(limit) - static_cast<double>(start)) /
                  static_cast<double>(delta));
    if (!(count < 0x1p62)) return std::nullopt;  // NaN too
    return static_cast<int64_t>(std::max(count, 0.0));
  }
}

// start + i * delta, in the type of the elements (half types: in float, rounded
// once).
template <typename T>
T RangeElement(ComputeType<T> start, ComputeType<T> delta, int64_t i) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(start) +
                          static_cast<uint64_t>(i) *
                              static_cast<uint64_t>(delta));
  } else {
    return Rounded<T>(start + static_cast<ComputeType<T>>(i) * delta);
  }
}

template <typename T>
absl::Status FillRange(OpContext& op) {
  const auto scalar = [&](size_t i) { return Widen(*op.input(i).data<T>()); };
  const ComputeType<T> start = scalar(0), limit = scalar(1), delta = scalar(2);
  const std::optional<int64_t> count = RangeCount(start, limit, delta);
  if (!count)
    return OpContext::Invalid("no range goes from {} to {} in steps of {}",
                              start, limit, delta);
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, kTypeOf<T>, {*count}));
  T* to = y->mutable_data<T>();
  for (int64_t i = 0; i < *count; ++i) to[i] = RangeElement<T>(start, delta, i);
  return absl::OkStatus();
}

absl::Status Range(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(3));
  for (size_t i = 0; i < 3; ++i) {
    if (op.input(i).count() != 1 || op.input(i).type() != op.input(0).type()) {
      return OpContext::Invalid("operand {} is {}, expected one element of {}",
                                i, Describe(op.input(i)),
                                ir::DataTypeName(op.input(0).type()));
    }
  }
  return op.ForType<ADDNORM_NUMBER_TYPES>(
      op.input(0), [&]<typename T>() { return FillRange<T>(op); });
}

// Writes ones along a diagonal of a matrix of zeros.
template <typename T>
void WriteDiagonal(Tensor& y, int64_t k) {
  const int64_t height = y.dims()[0], width = y.dims()[1];
  T one;
  if constexpr (kIsHalfType<T>) {
    one = Narrow<T>(1.0f);
  } else {
    one = T{1};
  }
  for (int64_t row = std::max<int64_t>(0, -k); row < height && row + k < width;
       ++row)
    y.mutable_data<T>()[row * width + row + k] = one;
}

absl::Status EyeLike(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  if (x.rank() != 2) return OpContext::Invalid("{} is no matrix", Describe(x));
  const auto type = static_cast<ir::DataType>(
      op.attributes().Int("dtype", static_cast<int64_t>(x.type())));
  // Diagonals beyond the matrix are all the same, and do not overflow.
  const int64_t k =
      std::clamp(op.attributes().Int("k", 0), -x.dims()[0], x.dims()[1]);
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, type, x.dims()));
  const std::byte zeros[16] = {};
  Fill(op.threads(), y->mutable_data<std::byte>(), y->count(), zeros,
       ElementBytes(*y));
  if (y->count() == 0) return absl::OkStatus();
  return op.ForType<ADDNORM_NUMBER_TYPES, bool>(
      type, [&]<typename T>() { WriteDiagonal<T>(*y, k); });
}

// The integer that a number stands for, as a cast makes it; for NaN and numbers
// that int64 does not have, one that is no index.
template <typename T>
int64_t IndexFrom(T value) {
  const auto wide = Widen(value);
  if constexpr (std::is_same_v<T, uint64_t>) {
    constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
    return static_cast<int64_t>(std::min(wide, kMax));
  } else if constexpr (std::is_integral_v<T>) {
    return wide;
  } else {
    const double real = static_cast<double>(wide);
    return real >= -0x1p62 && real <= 0x1p62
               ? static_cast<int64_t>(wide)
               : std::numeric_limits<int64_t>::min();
  }
}

// Elements of a operand of any type of numbers as integers.
absl::StatusOr<std::vector<int64_t>> IntsOfNumbers(const OpContext& op,
                                                   size_t i) {
  const Tensor& tensor = op.input(i);
  std::vector<int64_t> values(static_cast<size_t>(tensor.count()));
  RETURN_IF_ERROR((op.ForType<ADDNORM_NUMBER_TYPES>(tensor, [&]<typename T>() {
    std::transform(tensor.data<T>(), tensor.data<T>() + tensor.count(),
                   values.begin(), IndexFrom<T>);
  })));
  return values;
}

// The axis of the output that the depth makes, and its dims.
absl::StatusOr<Dims> OneHotDims(const OpContext& op, int64_t axis) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> depth, IntsOfNumbers(op, 1));
  if (depth.size() != 1 || depth[0] < 0) {
    return OpContext::Invalid("the depth is {}, expected one number ≥ 0",
                              ToString(depth));
  }
  Dims dims = op.input(0).dims();
  dims.insert(dims.begin() + axis, depth[0]);
  return dims;
}

absl::Status OneHot(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(3));
  ASSIGN_OR_RETURN(
      const int64_t axis,
      NormalAxis(op.attributes().Int("axis", -1), op.input(0).rank() + 1));
  ASSIGN_OR_RETURN(const Dims dims, OneHotDims(op, axis));
  const Tensor& values = op.input(2);
  if (values.count() != 2) {
    return OpContext::Invalid("the values are {}, expected two",
                              Describe(values));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> indices, IntsOfNumbers(op, 0));
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, values.type(), dims));
  const int64_t element = ElementBytes(values);
  const std::byte* off = values.data<std::byte>();
  std::byte* to = y->mutable_data<std::byte>();
  Fill(op.threads(), to, y->count(), off, element);
  if (y->count() == 0) return absl::OkStatus();
  const int64_t depth = dims[axis];
  const int64_t inner =
      Product(dims, axis + 1, static_cast<int64_t>(dims.size()));
  for (size_t i = 0; i < indices.size(); ++i) {
    // An index out of range is a row without a hot element.
    if (indices[i] < -depth || indices[i] >= depth) continue;
    const int64_t hot = indices[i] < 0 ? indices[i] + depth : indices[i];
    const int64_t at = static_cast<int64_t>(i);
    const int64_t offset = (at / inner * depth + hot) * inner + at % inner;
    std::memcpy(to + offset * element, off + element,
                static_cast<size_t>(element));
  }
  return absl::OkStatus();
}

constexpr OpRow kRows[] = {
    {"", "Constant", Constant}, {"", "ConstantOfShape", ConstantOfShape},
    {"", "EyeLike", EyeLike},   {"", "OneHot", OneHot},
    {"", "Range", Range},
};

}  // namespace

OpTable CreationOps() { return kRows; }

}  // namespace addnorm::runtime
