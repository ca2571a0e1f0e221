// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/symbol_dims.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"
#include "tool/input_facts.h"
#include "tool/suggestion.h"

namespace addnorm::tool {
namespace {

using runtime::Dims;
using runtime::Tensor;

constexpr int64_t kDefaultLength = 8;

struct RoleRow {
  std::string_view part;  // of the name in lower case
  bool is_whole;          // the name is this
  DimRole role;
};

// The first that fits; "past" comes before "seq" for past_sequence_length.
constexpr RoleRow kRoles[] = {
    {"sliding", false, DimRole::kOther},  // rows of a window, no past
    {"total", false, DimRole::kTotal},
    {"past", false, DimRole::kPast},
    {"batch", false, DimRole::kBatch},
    {"encoder", false, DimRole::kEncoder},
    {"enc", true, DimRole::kEncoder},
    {"seq", false, DimRole::kSequence},
    {"len", false, DimRole::kSequence},
    {"token", false, DimRole::kSequence},
    {"position", false, DimRole::kSequence},
    {"b", true, DimRole::kBatch},
    {"n", true, DimRole::kBatch},
    {"t", true, DimRole::kSequence},
    {"s", true, DimRole::kSequence},
};

bool IsNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         c == '.';
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::optional<int64_t> AsNumber(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

// "a + 2*b" as its parts: {a, +}, {2, *}, {b, end}. Empty if it is no such sum
// of products; then the whole is a symbol.
std::vector<std::string_view> Operands(std::string_view expression) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = expression.find_first_of("+-*");
    const std::string_view part = Trimmed(expression.substr(0, end));
    if (part.empty() || !std::all_of(part.begin(), part.end(), IsNameChar))
      return {};
    parts.push_back(part);
    if (end == std::string_view::npos) return parts;
    expression.remove_prefix(end + 1);
  }
}

// Symbols of a dimension: the parts of an expression, or the whole.
std::vector<std::string> SymbolsOf(const ir::Dimension& dim) {
  std::vector<std::string> symbols;
  if (dim.value || dim.symbol.empty()) return symbols;
  const std::vector<std::string_view> parts = Operands(dim.symbol);
  if (parts.empty()) return {dim.symbol};
  for (const std::string_view part : parts) {
    if (!AsNumber(part)) symbols.emplace_back(part);
  }
  return symbols;
}

int64_t DefaultOf(DimRole role, size_t axis) {
  if (role == DimRole::kPast) return 0;
  if (role == DimRole::kBatch) return 1;
  // Exporters also call dimensions s72 or unk__144: then the first is a batch.
  if (role == DimRole::kOther && axis == 0) return 1;
  return kDefaultLength;
}

}  // namespace

DimRole RoleOf(std::string_view symbol) {
  std::string name(symbol);
  for (char& c : name)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const RoleRow& row : kRoles) {
    if (row.is_whole ? name == row.part
                     : name.find(row.part) != std::string::npos)
      return row.role;
  }
  return DimRole::kOther;
}

const ChosenDim* SymbolDims::Find(std::string_view symbol) const {
  const auto it =
      std::find_if(chosen_.begin(), chosen_.end(),
                   [&](const ChosenDim& c) { return c.symbol == symbol; });
  return it == chosen_.end() ? nullptr : &*it;
}

void SymbolDims::Set(const std::string& symbol, int64_t value,
                     std::string_view origin) {
  if (Find(symbol) == nullptr) chosen_.push_back({symbol, value, origin});
}

std::optional<int64_t> SymbolDims::First(DimRole role) const {
  for (const ChosenDim& dim : chosen_) {
    if (RoleOf(dim.symbol) == role) return dim.value;
  }
  return std::nullopt;
}

// Only whole symbols: what a sum's parts are, the sum does not tell.
void SymbolDims::Bind(const ir::Value& input, const Tensor& tensor) {
  const auto& shape = input.type.shape;
  if (!shape || shape->size() != tensor.dims().size()) return;
  for (size_t i = 0; i < shape->size(); ++i) {
    const ir::Dimension& dim = (*shape)[i];
    const std::vector<std::string> symbols = SymbolsOf(dim);
    if (symbols.size() != 1 || symbols[0] != dim.symbol) continue;
    Set(dim.symbol, tensor.dims()[i], "from inputs");
    const int64_t bound = Find(dim.symbol)->value;
    if (bound == tensor.dims()[i]) continue;
    warnings_.push_back(fmt::format(
        "input '{}': dimension {} ('{}') is {}, but {} in another input",
        ir::Printable(input.name()), i, ir::Printable(dim.symbol),
        tensor.dims()[i], bound));
  }
}

absl::Status SymbolDims::CheckSums(const ir::Value& input,
                                   const Tensor& tensor) const {
  const auto& shape = input.type.shape;
  if (!shape || shape->size() != tensor.dims().size()) return absl::OkStatus();
  for (size_t i = 0; i < shape->size(); ++i) {
    const std::string& sum = (*shape)[i].symbol;
    const std::optional<int64_t> expected =
        Find(sum) != nullptr || sum.empty() ? std::nullopt : Evaluate(sum);
    if (!expected || *expected == tensor.dims()[i]) continue;
    std::string parts;
    for (const std::string& symbol : SymbolsOf((*shape)[i])) {
      const ChosenDim& part = *Find(symbol);
      parts += fmt::format("{}{}={} ({})", parts.empty() ? "" : ", ", symbol,
                           part.value, part.origin);
    }
    return absl::InvalidArgumentError(fmt::format(
        "input '{}': dimension {} is {}, expected {} = {}: {}\nhint: --dim "
        "NAME=N sets dimensions of inputs that are generated",
        ir::Printable(input.name()), i, tensor.dims()[i], ir::Printable(sum),
        *expected, ir::Printable(parts)));
  }
  return absl::OkStatus();
}

absl::Status SymbolDims::CheckGiven(const std::vector<std::string>& known,
                                    const std::string& symbol,
                                    int64_t value) const {
  if (std::find(known.begin(), known.end(), symbol) == known.end()) {
    return absl::FailedPreconditionError(fmt::format(
        "--dim {}: no input has this symbolic dimension{}\nhint: {}",
        ir::Printable(symbol), Suggestion(symbol, known),
        known.empty() ? "all dimensions of the inputs are numbers"
                      : ir::Printable(fmt::format("symbols of the inputs: {}",
                                                  fmt::join(known, ", ")))));
  }
  const ChosenDim* bound = Find(symbol);
  if (bound == nullptr || bound->value == value) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("--dim {}={}: the given inputs have {}\nhint: leave it out",
                  ir::Printable(symbol), value, bound->value));
}

void SymbolDims::AddDefaults(const ir::Value& input, bool with_totals) {
  const ir::Shape& shape = *input.type.shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    for (const std::string& symbol : SymbolsOf(shape[i])) {
      const DimRole role = RoleOf(symbol);
      if ((role == DimRole::kTotal) != with_totals) continue;
      if (const auto size = i == 3 ? HeadSize(input) : std::nullopt)
        Set(symbol, *size, "head size");
      if (const auto rows = i == 2 ? CacheRows(input) : std::nullopt)
        Set(symbol, *rows, "window");
      const int64_t value =
          with_totals ? First(DimRole::kPast).value_or(0) +
                            First(DimRole::kSequence).value_or(kDefaultLength)
                      : DefaultOf(role, i);
      Set(symbol, value, "default");
    }
  }
}

absl::Status SymbolDims::Choose(const ir::Graph& graph,
                                std::span<const Tensor> tensors,
                                const DimValues& given) {
  std::vector<std::string> known;
  for (const ir::Value* input : graph.inputs()) {
    if (!input->type.shape) continue;
    for (const ir::Dimension& dim : *input->type.shape) {
      for (std::string& symbol : SymbolsOf(dim)) {
        if (std::find(known.begin(), known.end(), symbol) == known.end())
          known.push_back(std::move(symbol));
      }
    }
  }
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (!tensors[i].is_absent()) Bind(*graph.inputs()[i], tensors[i]);
  }
  for (const auto& [symbol, value] : given) {
    RETURN_IF_ERROR(CheckGiven(known, symbol, value));
    Set(symbol, value, "given");
  }
  for (const bool with_totals : {false, true}) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const ir::Value& input = *graph.inputs()[i];
      const bool is_made =
          tensors[i].is_absent() && input.initializer() == nullptr;
      if (is_made && input.type.shape) AddDefaults(input, with_totals);
    }
  }
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (!tensors[i].is_absent())
      RETURN_IF_ERROR(CheckSums(*graph.inputs()[i], tensors[i]));
  }
  return absl::OkStatus();
}

// A sum of products, from left to right.
std::optional<int64_t> SymbolDims::Evaluate(std::string_view expression) const {
  int64_t sum = 0;
  int64_t product = 1;
  bool overflow = false;
  const char* at = expression.data();
  for (const std::string_view part : Operands(expression)) {
    const ChosenDim* symbol = Find(part);
    const std::optional<int64_t> value =
        symbol != nullptr ? symbol->value : AsNumber(part);
    if (!value) return std::nullopt;
    // The operator before the part.
    const std::string_view between(at, static_cast<size_t>(part.data() - at));
    if (between.find('*') != std::string_view::npos) {
      overflow |= __builtin_mul_overflow(product, *value, &product);
    } else {
      overflow |= __builtin_add_overflow(
          sum, at == expression.data() ? 0 : product, &sum);
      product = between.find('-') != std::string_view::npos ? -*value : *value;
    }
    at = part.data() + part.size();
  }
  overflow |= __builtin_add_overflow(sum, product, &sum);
  if (overflow || at == expression.data()) return std::nullopt;
  return sum;
}

Dims SymbolDims::ShapeOf(const ir::Shape& shape) const {
  Dims dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    const ir::Dimension& dim = shape[i];
    const ChosenDim* symbol = Find(dim.symbol);
    if (dim.value) {
      dims.push_back(*dim.value);
    } else if (symbol != nullptr && !dim.symbol.empty()) {
      dims.push_back(symbol->value);
    } else {
      dims.push_back(
          Evaluate(dim.symbol).value_or(DefaultOf(DimRole::kOther, i)));
    }
  }
  return dims;
}

}  // namespace addnorm::tool
