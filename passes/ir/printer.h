// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Prints the IR in the style of ONNX text, for people, tests and --explain.
// It is not a serialiser: of large tensors it prints the type and dims only, of
// large initializers nothing, and names are not quoted but made safe to show.
//
//   ir::ToText(model);
//   // main_graph (float[2,8] a) => (y) <float two = {2.0}> {
//   //   [square] sq = Pow(a, two)
//   //   …
#ifndef ADDNORM_PASSES_IR_PRINTER_H_
#define ADDNORM_PASSES_IR_PRINTER_H_

#include <string>

#include "passes/ir/model.h"

namespace addnorm::ir {

std::string ToText(const Node& node);
std::string ToText(const Graph& graph);
std::string ToText(const Function& function);
std::string ToText(const Model& model);

}  // namespace addnorm::ir

#endif  // ADDNORM_PASSES_IR_PRINTER_H_
