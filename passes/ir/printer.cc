// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/ir/printer.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/ir/printable.h"

namespace addnorm::ir {
namespace {

std::string Indent(int depth) {
  return std::string(static_cast<size_t>(depth) * 2, ' ');
}

// An absent value leaves its place between the commas empty.
std::string Names(const std::vector<Value*>& values, bool with_types) {
  std::vector<std::string> names;
  for (const Value* value : values) {
    const bool with_type =
        with_types && value != nullptr && value->type.known();
    names.push_back((with_type ? Printable(ToString(value->type)) + " " : "") +
                    (value == nullptr ? "" : Printable(value->name())));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// ---- elements

// Constants that say what a graph computes; weights are longer.
constexpr int64_t kMaxPrinted = 8;

// With a point or an exponent, so that a float is not taken for an integer.
template <typename T>
std::string FloatText(T value) {
  std::string text = fmt::format("{}", value);
  const bool is_whole = text.find_first_not_of("-0123456789") == text.npos;
  return is_whole ? text + ".0" : text;
}

template <typename T>
T Load(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

float WidenBFloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

float WidenFloat16(uint16_t bits) {
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 0x1f) return fraction != 0 ? NAN : sign * INFINITY;
  return exponent == 0 ? sign * std::ldexp(static_cast<float>(fraction), -24)
                       : sign * std::ldexp(static_cast<float>(fraction + 1024),
                                           exponent - 25);
}

// One element, of a type that has whole bytes; "" for others.
std::string ElementText(DataType type, std::string_view bytes) {
  switch (type) {
    case DataType::kFloat:
      return FloatText(Load<float>(bytes));
    case DataType::kDouble:
      return FloatText(Load<double>(bytes));
    case DataType::kFloat16:
      return FloatText(WidenFloat16(Load<uint16_t>(bytes)));
    case DataType::kBFloat16:
      return FloatText(WidenBFloat16(Load<uint16_t>(bytes)));
    case DataType::kInt64:
      return fmt::format("{}", Load<int64_t>(bytes));
    case DataType::kInt32:
      return fmt::format("{}", Load<int32_t>(bytes));
    case DataType::kInt16:
      return fmt::format("{}", Load<int16_t>(bytes));
    case DataType::kInt8:
      return fmt::format("{}", static_cast<int>(Load<int8_t>(bytes)));
    case DataType::kUint64:
      return fmt::format("{}", Load<uint64_t>(bytes));
    case DataType::kUint32:
      return fmt::format("{}", Load<uint32_t>(bytes));
    case DataType::kUint16:
      return fmt::format("{}", Load<uint16_t>(bytes));
    case DataType::kUint8:
    case DataType::kBool:
      return fmt::format("{}", static_cast<int>(Load<uint8_t>(bytes)));
    default:
      return "";
  }
}

// "{2.0}"; "" for a tensor whose elements are many, elsewhere, or of a type
// that is not printed.
std::string Elements(const Tensor& tensor) {
  const std::string* bytes = tensor.inline_bytes();
  const std::optional<int64_t> count = tensor.element_count();
  const std::optional<int> bits = BitWidth(tensor.type);
  if (bytes == nullptr || !count || *count > kMaxPrinted || !bits) return "";
  const auto width = static_cast<size_t>(*bits) / 8;
  if (width == 0 || bytes->size() != static_cast<size_t>(*count) * width)
    return "";
  std::vector<std::string> texts;
  for (size_t at = 0; at < bytes->size(); at += width) {
    texts.push_back(
        ElementText(tensor.type, std::string_view(*bytes).substr(at, width)));
    if (texts.back().empty()) return "";
  }
  return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

// "float", "float[2]"
std::string TypeText(const Tensor& tensor) {
  const std::string dims =
      tensor.dims.empty() ? ""
                          : fmt::format("[{}]", fmt::join(tensor.dims, ","));
  return DataTypeName(tensor.type) + dims;
}

std::string AttributeText(const Attribute& attribute) {
  if (const auto* tensor = attribute.get<Tensor>()) {
    const std::string elements = Elements(*tensor);
    return TypeText(*tensor) + (elements.empty() ? "" : " " + elements);
  }
  return Printable(ToString(attribute));
}

// " <float two = {2.0}>": those whose values can be shown.
std::string Initializers(const Graph& graph) {
  std::vector<std::string> texts;
  for (const Value* value : graph.values()) {
    if (value->initializer() == nullptr) continue;
    const std::string elements = Elements(*value->initializer());
    if (elements.empty()) continue;
    texts.push_back(fmt::format("{} {} = {}", TypeText(*value->initializer()),
                                Printable(value->name()), elements));
  }
  return texts.empty() ? "" : fmt::format("<{}> ", fmt::join(texts, ", "));
}

// ---- nodes and graphs

void PrintGraph(const Graph& graph, int depth, std::string& out);

void PrintNode(const Node& node, int depth, std::string& out) {
  const std::string label =
      node.name.empty() ? "" : fmt::format("[{}] ", Printable(node.name));
  const std::string dot =
      node.domain().empty() ? "" : Printable(node.domain()) + ".";
  out +=
      fmt::format("{}{}{} = {}{}", Indent(depth), label,
                  Names(node.outputs(), false), dot, Printable(node.op_type()));
  std::string attributes;
  for (const Attribute& attribute : node.attributes) {
    if (!attributes.empty()) attributes += ", ";
    attributes += fmt::format("{} = {}", Printable(attribute.name),
                              AttributeText(attribute));
  }
  if (!attributes.empty()) out += fmt::format("<{}>", attributes);
  out += fmt::format("({})", Names(node.inputs(), false));
  for (const Graph* inner : node.subgraphs()) {
    out += " ";
    PrintGraph(*inner, depth + 1, out);
  }
}

void PrintBody(const Graph& graph, int depth, std::string& out) {
  out += "{\n";
  for (const Node& node : graph.nodes()) {
    PrintNode(node, depth + 1, out);
    out += "\n";
  }
  out += Indent(depth) + "}";
}

void PrintGraph(const Graph& graph, int depth, std::string& out) {
  out += fmt::format("{} ({}) => ({}) {}", Printable(graph.name),
                     Names(graph.inputs(), true), Names(graph.outputs(), true),
                     Initializers(graph));
  PrintBody(graph, depth, out);
}

std::string Imports(const std::vector<OpsetImport>& imports) {
  std::string text;
  for (const OpsetImport& import : imports) {
    fmt::format_to(std::back_inserter(text), "{}\"{}\" : {}",
                   text.empty() ? "" : ", ", Printable(import.domain),
                   import.version);
  }
  return text;
}

}  // namespace

std::string ToText(const Node& node) {
  std::string out;
  PrintNode(node, 0, out);
  return out;
}

std::string ToText(const Graph& graph) {
  std::string out;
  PrintGraph(graph, 0, out);
  return out + "\n";
}

std::string ToText(const Function& function) {
  std::string out = fmt::format(
      "<domain: \"{}\", opset_import: [{}]>\n{}", Printable(function.domain),
      Imports(function.opset_imports), Printable(function.name));
  if (!function.attributes.empty()) {
    out += fmt::format(
        " <{}>",
        Printable(fmt::format("{}", fmt::join(function.attributes, ", "))));
  }
  out += fmt::format(" ({}) => ({}) ", Names(function.body.inputs(), false),
                     Names(function.body.outputs(), false));
  PrintBody(function.body, 0, out);
  return out + "\n";
}

std::string ToText(const Model& model) {
  std::string out = fmt::format("<ir_version: {}, opset_import: [{}]>\n",
                                model.ir_version, Imports(model.opset_imports));
  out += ToText(model.graph);
  for (const Function& function : model.functions) out += ToText(function);
  return out;
}

}  // namespace addnorm::ir
