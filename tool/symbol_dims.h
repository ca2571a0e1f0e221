// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers for the symbolic dimensions of a model's inputs: those that the user
// gave, those that given tensors have, and defaults by what the symbol is
// called (batch 1, past 0, total = past + sequence, sequence 8). Only the size
// of heads in past keys is taken from the attention that reads them.
//
// A wrong guess is an error of some node, and --dim is the way out. "past +
// sequence" is computed from its parts.
//
//   SymbolDims dims;
//   RETURN_IF_ERROR(dims.Choose(model.graph, tensors, {{"seq", 16}}));
//   const runtime::Dims shape = dims.ShapeOf(*value.type.shape);
#ifndef ADDNORM_TOOL_SYMBOL_DIMS_H_
#define ADDNORM_TOOL_SYMBOL_DIMS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "passes/ir/graph.h"
#include "runtime/tensor.h"

namespace addnorm::tool {

using DimValues = std::map<std::string, int64_t>;

// What a symbol stands for, by its name.
enum class DimRole { kTotal, kPast, kBatch, kEncoder, kSequence, kOther };
DimRole RoleOf(std::string_view symbol);

struct ChosenDim {
  std::string symbol;
  int64_t value = 0;
  std::string_view
      origin;  // "given", "from inputs", "head size", "window", "default"
};

class SymbolDims {
 public:
  // `tensors` are the graph's inputs in order, absent where they are to be
  // made. kFailedPrecondition for a given symbol that no input has, or that a
  // tensor contradicts; kInvalidArgument for a tensor that the sum of others
  // contradicts.
  absl::Status Choose(const ir::Graph& graph,
                      std::span<const runtime::Tensor> tensors,
                      const DimValues& given);

  // Symbols of inputs without a tensor, and given ones, in order of appearance.
  const std::vector<ChosenDim>& chosen() const { return chosen_; }

  // Symbols with two values in the tensors. Some exporters write "?" or "None"
  // for all they do not know, so it is no error.
  const std::vector<std::string>& warnings() const { return warnings_; }

  runtime::Dims ShapeOf(const ir::Shape& shape) const;
  // The number for the first symbol of that role; nullopt if there is none.
  std::optional<int64_t> First(DimRole role) const;

 private:
  void Set(const std::string& symbol, int64_t value, std::string_view origin);
  void Bind(const ir::Value& input, const runtime::Tensor& tensor);
  absl::Status CheckGiven(const std::vector<std::string>& known,
                          const std::string& symbol, int64_t value) const;
  // "past + sequence" of a tensor, against its parts.
  absl::Status CheckSums(const ir::Value& input,
                         const runtime::Tensor& tensor) const;
  void AddDefaults(const ir::Value& input, bool with_totals);
  const ChosenDim* Find(std::string_view symbol) const;
  std::optional<int64_t> Evaluate(std::string_view expression) const;

  std::vector<ChosenDim> chosen_;
  std::vector<std::string> warnings_;
};

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_SYMBOL_DIMS_H_
