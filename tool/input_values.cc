// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/input_values.h"

#include <algorithm>
#include <cctype>
#include <random>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "passes/ir/status_macros.h"
#include "tool/input_facts.h"

namespace addnorm::tool {
namespace {

using Kind = InputValues::Kind;
using ir::DataType;
using runtime::Dims;
using runtime::Tensor;

// ---- what the name says

enum class Purpose { kMask, kPositions, kLastPosition, kTotal, kZeros, kIds };

struct PurposeRow {
  std::string_view part;  // of the name in lower case
  Purpose purpose;
};

constexpr PurposeRow kPurposes[] = {
    {"position", Purpose::kPositions},      // position_ids, cache_position
    {"seqlens_k", Purpose::kLastPosition},  // as GroupQueryAttention has it
    {"total_seq", Purpose::kTotal},        {"mask", Purpose::kMask},
    {"token_type", Purpose::kZeros},       {"segment_ids", Purpose::kZeros},
};

Purpose PurposeOf(std::string_view name) {
  std::string lower(name);
  for (char& c : lower)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const PurposeRow& row : kPurposes) {
    if (lower.find(row.part) != std::string::npos) return row.purpose;
  }
  return Purpose::kIds;
}

InputValues Constant(int64_t value) {
  return {Kind::kConstant, value, 0, 1, fmt::format("{}", value)};
}

InputValues Ids(const ir::Value& input) {
  const int64_t rows = TableRows(input);
  if (rows > 0)
    return {Kind::kUniform, 0, rows, 1, fmt::format("ids below {}", rows)};
  return {Kind::kUniform, 0, 2, 1, "0 or 1"};
}

InputValues Integers(const ir::Value& input, int64_t past, int64_t total) {
  const int bits = ir::BitWidth(input.type.element).value_or(0);
  switch (PurposeOf(input.name())) {
    case Purpose::kMask:
      return Constant(1);
    case Purpose::kZeros:
      return Constant(0);
    case Purpose::kTotal:
      return Constant(total);
    case Purpose::kLastPosition:
      return Constant(std::max<int64_t>(total - 1, 0));
    case Purpose::kPositions: {
      const int64_t rows = TableRows(input);
      return {Kind::kPositions, past, rows, 1,
              fmt::format("positions from {}", past)};
    }
    case Purpose::kIds:
      break;
  }
  // Quantized data: every value that the type has.
  if (bits <= 8) {
    const bool is_signed = input.type.element == DataType::kInt8 ||
                           input.type.element == DataType::kInt4 ||
                           input.type.element == DataType::kInt2;
    const int64_t count = int64_t{1} << bits;
    return {Kind::kUniform, is_signed ? -count / 2 : 0, count, 1,
            "every value of the type"};
  }
  return Ids(input);
}

// ---- elements

// Not std::hash, whose values differ between libraries.
uint64_t Fnv1a(std::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

class Source {
 public:
  Source(const InputValues& values, const Dims& dims, uint64_t seed)
      : values_(values),
        row_(dims.empty() ? 1 : std::max<int64_t>(dims.back(), 1)),
        generator_(seed) {}

  double Normal() {
    // The sum of 12 uniform numbers has variance 1. Sums of 16-bit integers are
    // exact in a float; a logarithm or a cosine would differ between machines.
    int64_t sum = 0;
    for (int word = 0; word < 3; ++word) {
      for (uint64_t bits = generator_(), part = 0; part < 4;
           ++part, bits >>= 16)
        sum += static_cast<int64_t>(bits & 0xffff);
    }
    return static_cast<double>(2 * sum - 12 * 0xffff) * 0x1p-17;
  }

  int64_t Integer(int64_t index) {
    switch (values_.kind) {
      case Kind::kConstant:
        return values_.first;
      case Kind::kPositions: {
        const int64_t position = values_.first + index % row_;
        return values_.count > 0 ? std::min(position, values_.count - 1)
                                 : position;
      }
      default:
        // The bias of the remainder is below 2^-32 for any table.
        return values_.first +
               static_cast<int64_t>(generator_() %
                                    static_cast<uint64_t>(values_.count));
    }
  }

 private:
  const InputValues& values_;
  int64_t row_;
  std::mt19937_64 generator_;
};

template <typename T>
inline constexpr bool kIsStored = false;
template <typename Bits, DataType kType>
inline constexpr bool kIsStored<runtime::Stored<Bits, kType>> = true;

template <typename T>
void Fill(Tensor& tensor, const InputValues& values, Source& source) {
  for (int64_t i = 0; i < tensor.count(); ++i) {
    T& element = tensor.mutable_data<T>()[i];
    if constexpr (std::is_floating_point_v<T> || runtime::kIsHalfType<T>) {
      const double value = values.kind == Kind::kNormal
                               ? source.Normal() * values.scale
                               : static_cast<double>(source.Integer(i));
      element = runtime::Narrow<T>(static_cast<runtime::ComputeType<T>>(value));
    } else if constexpr (kIsStored<T>) {
      element.bits = static_cast<decltype(element.bits)>(source.Integer(i));
    } else {
      element = static_cast<T>(source.Integer(i));
    }
  }
}

template <typename... Ts>
bool FillAny(Tensor& tensor, const InputValues& values, Source& source) {
  return ((tensor.type() == runtime::kTypeOf<Ts> &&
           (Fill<Ts>(tensor, values, source), true)) ||
          ...);
}

}  // namespace

InputValues ValuesFor(const ir::Value& input, int64_t past, int64_t total) {
  const DataType type = input.type.element;
  if (type == DataType::kBool) {
    InputValues values = Constant(1);
    values.description = "true";
    return values;
  }
  if (!ir::IsFloat(type)) return Integers(input, past, total);
  // A mask of floats is added to scores.
  if (PurposeOf(input.name()) == Purpose::kMask) return Constant(0);
  return {Kind::kNormal, 0, 0, 1, "normal(0, 1)"};
}

absl::StatusOr<Tensor> Generate(const InputValues& values,
                                const ir::Value& input, Dims dims,
                                uint64_t seed) {
  ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(input.type.element,
                                                 std::move(dims), nullptr));
  Source source(values, tensor.dims(), seed ^ Fnv1a(input.name()));
  using namespace runtime;  // NOLINT: the names of element types
  const bool is_filled =
      FillAny<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t,
              uint8_t, uint16_t, uint32_t, uint64_t, bool, Int4, Uint4, Int2,
              Uint2>(tensor, values, source);
  if (is_filled) return tensor;
  return absl::UnimplementedError(
      fmt::format("values of type {} cannot be generated",
                  ir::DataTypeName(input.type.element)));
}

}  // namespace addnorm::tool
