// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/input_values.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "passes/ir/model.h"
#include "passes/ir/status_macros.h"

namespace addnorm::tool {
namespace {

using Kind = InputValues::Kind;
using ir::DataType;
using runtime::Dims;
using runtime::Tensor;

// ---- what the graph says
// -------------------------------------------------------

// Operators that pick rows of a table by ids.
struct LookupRow {
  std::string_view domain, op_type;
  size_t ids, table;  // operands
  std::string_view axis = "axis";
};

constexpr LookupRow kLookups[] = {
    {"", "Gather", 1, 0},
    {"com.microsoft", "GatherBlockQuantized", 1, 0, "gather_axis"},
    {"com.microsoft", "EmbedLayerNormalization", 0, 2},
    {"com.microsoft", "EmbedLayerNormalization", 1, 4},
};

// Operators that pass their first operand's elements on.
constexpr std::string_view kPassing[] = {
    "Cast",    "CastLike",  "Identity", "Reshape",          "Unsqueeze",
    "Squeeze", "Flatten",   "Expand",   "DequantizeLinear", "Slice",
    "Clip",    "Transpose", "Tile",
};

bool IsPassing(const ir::Node& node) {
  return node.domain().empty() &&
         std::find(std::begin(kPassing), std::end(kPassing), node.op_type()) !=
             std::end(kPassing);
}

std::optional<int64_t> DimAt(const ir::Value& table, int64_t axis) {
  if (const ir::Tensor* tensor = table.initializer()) {
    const auto rank = static_cast<int64_t>(tensor->dims.size());
    if (axis < 0) axis += rank;
    if (axis >= 0 && axis < rank) return tensor->dims[axis];
    return std::nullopt;
  }
  if (table.type.shape) {
    const auto rank = static_cast<int64_t>(table.type.shape->size());
    if (axis < 0) axis += rank;
    if (axis >= 0 && axis < rank) return (*table.type.shape)[axis].value;
    return std::nullopt;
  }
  // A table that was narrowed or quantized.
  const ir::Node* producer = table.producer();
  if (producer == nullptr || producer->input(0) == nullptr ||
      !(producer->Is("", "Cast") || producer->Is("", "DequantizeLinear")))
    return std::nullopt;
  return DimAt(*producer->input(0), axis);
}

class LookupSearch {
 public:
  // The fewest rows of all tables that the value reaches; 0 if none.
  int64_t Run(const ir::Value& ids) {
    std::vector<const ir::Value*> pending = {&ids};
    while (!pending.empty()) {
      const ir::Value* value = pending.back();
      pending.pop_back();
      if (!seen_.insert(value).second) continue;
      for (const ir::Use& use : value->uses()) Visit(use, pending);
    }
    return rows_;
  }

 private:
  void Visit(const ir::Use& use, std::vector<const ir::Value*>& pending) {
    const ir::Node& node = *use.node;
    for (const LookupRow& row : kLookups) {
      if (node.Is(row.domain, row.op_type) &&
          use.index == static_cast<int>(row.ids))
        AddTable(node, row);
    }
    const ir::Function* function = node.graph()->model()->FindFunction(
        node.domain(), node.op_type(), node.overload);
    const auto index = static_cast<size_t>(use.index);
    if (function != nullptr && index < function->body.inputs().size())
      pending.push_back(function->body.inputs()[index]);
    if (IsPassing(node) && index == 0 && node.output(0) != nullptr)
      pending.push_back(node.output(0));
  }

  void AddTable(const ir::Node& node, const LookupRow& row) {
    const ir::Value* table = node.input(row.table);
    const ir::Attribute* attribute = node.attribute(row.axis);
    const int64_t* axis =
        attribute == nullptr ? nullptr : attribute->get<int64_t>();
    if (table == nullptr) return;
    const int64_t rows = DimAt(*table, axis == nullptr ? 0 : *axis).value_or(0);
    if (rows > 0) rows_ = rows_ == 0 ? rows : std::min(rows_, rows);
  }

  absl::flat_hash_set<const ir::Value*> seen_;
  int64_t rows_ = 0;
};

// ---- what the name says
// --------------------------------------------------------

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
// ------------------------------------------------------------------

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

int64_t TableRows(const ir::Value& ids) { return LookupSearch().Run(ids); }

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
