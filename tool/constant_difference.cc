// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/constant_difference.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/constants.h"
#include "runtime/compare.h"
#include "runtime/element_types.h"
#include "runtime/tensor.h"

namespace addnorm::tool {
namespace {

using runtime::Tensor;

// The tensor of an initializer or a Constant node; nullopt for what is none,
// and for single numbers, which the text has already.
std::optional<ir::Tensor> TensorOf(const ir::Value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->initializer() != nullptr) return *value->initializer();
  const ir::Node* producer = value->producer();
  if (producer == nullptr || !producer->Is("", "Constant")) return std::nullopt;
  for (const ir::Attribute& attribute : producer->attributes) {
    if (const auto* tensor = attribute.get<ir::Tensor>()) return *tensor;
    auto numbers = passes::NumbersOf(attribute);
    if (numbers && !numbers->dims.empty()) return numbers;
  }
  return std::nullopt;
}

uint64_t SizeOf(const ir::Tensor& tensor) {
  return static_cast<uint64_t>(tensor.element_count().value_or(0)) *
         runtime::ElementSize(tensor.type);
}

std::string TypeText(const ir::Tensor& tensor) {
  return fmt::format("{}{}", ir::DataTypeName(tensor.type),
                     runtime::ToString(tensor.dims));
}

// Large ones are called weights.
std::string_view KindOf(const passes::StructureDifference& difference) {
  return difference.text.find("weight ") == std::string::npos ? "constant"
                                                              : "weight";
}

std::optional<Tensor> Read(const LoadedModel& loaded,
                           const ir::Tensor& tensor) {
  std::string bytes;
  if (const std::string* held = tensor.inline_bytes()) {
    bytes = *held;
  } else if (loaded.model->reader != nullptr) {
    absl::StatusOr<std::string> read = loaded.model->reader->Read(tensor);
    if (!read.ok()) return std::nullopt;
    bytes = *std::move(read);
  }
  absl::StatusOr<Tensor> made = Tensor::FromBytes(
      tensor.type, tensor.dims, std::move(bytes), /*meter=*/nullptr);
  return made.ok() ? std::optional<Tensor>(*std::move(made)) : std::nullopt;
}

// Two NaNs look alike as numbers.
std::string FirstText(const Tensor& a, const Tensor& b,
                      const runtime::Comparison& found) {
  const std::string x = runtime::NumberAt(a, found.first);
  const std::string y = runtime::NumberAt(b, found.first);
  return x == y ? fmt::format("{} against {}", found.found, found.expected)
                : fmt::format("{} against {}", y, x);
}

std::string DifferenceOf(const Tensor& a, const Tensor& b) {
  const runtime::Comparison found = runtime::Compare(a, b);
  if (found.first < 0) return "";
  const int64_t different = found.different + found.nan_payloads;
  const std::string first = FirstText(a, b, found);
  if (found.elements == 1) return first;
  return fmt::format("{} of {} elements {}; first [{}]: {}", different,
                     found.elements, different == 1 ? "differs" : "differ",
                     fmt::join(found.first_at, ","), first);
}

}  // namespace

void ConstantDifferences::Describe(passes::StructureDifference& difference) {
  const std::optional<ir::Tensor> a = TensorOf(difference.a.value);
  const std::optional<ir::Tensor> b = TensorOf(difference.b.value);
  // Of a number, the text says all.
  const bool has_bits = difference.text.find(" 0x") != std::string::npos;
  if (!a || !b || (a->element_count() == 1 && !has_bits)) return;
  std::string text;
  if (a->type != b->type || a->dims != b->dims) {
    text = fmt::format("constant {}, expected {}", TypeText(*b), TypeText(*a));
  } else {
    if (SizeOf(*a) > budget_) return;
    budget_ -= SizeOf(*a);
    const std::optional<Tensor> x = Read(a_, *a), y = Read(b_, *b);
    const std::string how = x && y ? DifferenceOf(*x, *y) : "";
    if (how.empty()) return;
    text =
        fmt::format("another {} {}: {}", KindOf(difference), TypeText(*b), how);
  }
  difference.text =
      difference.is_interface ? difference.text + ": " + text : std::move(text);
}

void ConstantDifferences::Describe(
    std::vector<passes::StructureDifference>& differences) {
  for (passes::StructureDifference& difference : differences)
    Describe(difference);
}

}  // namespace addnorm::tool
