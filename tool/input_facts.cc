// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/input_facts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "passes/ir/model.h"

namespace addnorm::tool {
namespace {

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

// Operators that tell how long a row of their past keys is: their query has all
// heads side by side, with the keys' and values' where those are not given.
struct AttentionRow {
  std::string_view domain, op_type;
  size_t past_key, past_value;  // operands
};

constexpr AttentionRow kAttentions[] = {
    {"com.microsoft", "GroupQueryAttention", 3, 4},
    {"com.microsoft", "MultiHeadAttention", 6, 7},
};

int64_t IntAttribute(const ir::Node& node, std::string_view name) {
  const ir::Attribute* attribute = node.attribute(name);
  const int64_t* value =
      attribute == nullptr ? nullptr : attribute->get<int64_t>();
  return value == nullptr ? 0 : *value;
}

std::optional<int64_t> HeadSizeOf(const ir::Node& attention) {
  const ir::Value* query = attention.input(0);
  if (query == nullptr || !query->type.shape || query->type.shape->size() != 3)
    return std::nullopt;
  const std::optional<int64_t> width = query->type.shape->back().value;
  int64_t heads = IntAttribute(attention, "num_heads");
  if (attention.input(1) == nullptr)
    heads += 2 * IntAttribute(attention, "kv_num_heads");
  if (!width || heads <= 0 || heads > *width) return std::nullopt;
  return *width / heads;
}

// nullptr if no attention reads it as past keys or values.
const ir::Node* ReaderOfPast(const ir::Value& past) {
  for (const ir::Use& use : past.uses()) {
    for (const AttentionRow& row : kAttentions) {
      const auto index = static_cast<size_t>(use.index);
      if (use.node->Is(row.domain, row.op_type) &&
          (index == row.past_key || index == row.past_value))
        return use.node;
    }
  }
  return nullptr;
}

}  // namespace

int64_t TableRows(const ir::Value& ids) { return LookupSearch().Run(ids); }

std::optional<int64_t> HeadSize(const ir::Value& past) {
  const ir::Node* attention = ReaderOfPast(past);
  return attention == nullptr ? std::nullopt : HeadSizeOf(*attention);
}

std::optional<int64_t> CacheRows(const ir::Value& past) {
  const ir::Node* attention = ReaderOfPast(past);
  if (attention == nullptr ||
      IntAttribute(*attention, "sliding_window_cache") == 0)
    return std::nullopt;
  const int64_t rows = IntAttribute(*attention, "local_window_size");
  return rows > 0 ? std::optional<int64_t>(rows) : std::nullopt;
}

}  // namespace addnorm::tool
