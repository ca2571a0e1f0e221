// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/ir/printer.h"

#include <iterator>

#include "fmt/format.h"
#include "fmt/ranges.h"

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
    names.push_back((with_type ? ToString(value->type) + " " : "") +
                    (value == nullptr ? "" : value->name()));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void PrintGraph(const Graph& graph, int depth, std::string& out);

void PrintNode(const Node& node, int depth, std::string& out) {
  const std::string dot = node.domain().empty() ? "" : node.domain() + ".";
  out += fmt::format("{}{} = {}{}", Indent(depth), Names(node.outputs(), false),
                     dot, node.op_type());
  std::string attributes;
  for (const Attribute& attribute : node.attributes) {
    if (!attributes.empty()) attributes += ", ";
    attributes += fmt::format("{} = {}", attribute.name, ToString(attribute));
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
  out += fmt::format("{} ({}) => ({}) ", graph.name,
                     Names(graph.inputs(), true), Names(graph.outputs(), true));
  PrintBody(graph, depth, out);
}

std::string Imports(const std::vector<OpsetImport>& imports) {
  std::string text;
  for (const OpsetImport& import : imports) {
    fmt::format_to(std::back_inserter(text), "{}\"{}\" : {}",
                   text.empty() ? "" : ", ", import.domain, import.version);
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
  std::string out =
      fmt::format("<domain: \"{}\", opset_import: [{}]>\n{}", function.domain,
                  Imports(function.opset_imports), function.name);
  if (!function.attributes.empty()) {
    out += fmt::format(" <{}>", fmt::join(function.attributes, ", "));
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
