// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "passes/hints.h"

namespace addnorm::passes {
namespace {

struct Hint {
  std::string_view in_reason;
  std::string_view text;
};

constexpr Hint kHints[] = {
    {"uantizeLinear", "leave the sum and the norm out of quantization"},
    {"can be overridden by the caller",
     "take it out of the graph's inputs, if no caller sets it"},
    {"is unknown",
     "write types and shapes into the model, as onnx.shape_inference does"},
    {"are not known to",
     "write types and shapes into the model, as onnx.shape_inference does"},
    {"ONNX Runtime would", "give the norm a Cast of its own"},
    {"is a graph output", "drop that output, if nobody needs it"},
    {"is captured by a subgraph", "the value is needed there as it is"},
    {"calls overload", "give the function a name of its own"},
    {"stands between the Add and the norm",
     "the norm does not read the sum itself; nothing but Casts and Identities "
     "may come first"},
    {"stands between",
     "no spelling has an operator there; 'onnx-addnorm patterns --text' shows "
     "what is recognised"},
    {"is read by", "'onnx-addnorm patterns --text' shows what is recognised"},
    {"inside the norm is", "the value is needed as it is"},
    {"is a constant: a bias",
     "only the sum of two computed values is a residual"},
    {"have different shapes", "an Add that broadcasts is no residual"},
    {"has device configurations", "remove the node's device configurations"},
    {"opset", "convert the model with onnx.version_converter"},
    {"not the last", "only a norm over the last axis works row by row"},
    {"not exactly the last axis",
     "only a norm over the last axis works row by row"},
    {"depends on the sum", "the scale must be made before the norm"},
    {"expected", "'onnx-addnorm patterns --text' shows what is recognised"},
};

}  // namespace

std::string_view HintFor(std::string_view reason) {
  for (const Hint& hint : kHints) {
    if (reason.find(hint.in_reason) != std::string_view::npos) return hint.text;
  }
  return "";
}

}  // namespace addnorm::passes
