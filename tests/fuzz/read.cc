// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes: read as a model or refused; what was read can be printed, and each
// constant of it be read.
#include "passes/ir/printer.h"
#include "tests/fuzz/claims.h"

namespace addnorm::fuzz {
namespace {

void ReadConstant(ir::TensorReader& reader, const ir::Tensor& tensor,
                  size_t file_size) {
  const std::optional<std::string> bytes = Answered(reader.Read(tensor));
  // A packed varint of one byte is an element of eight at most.
  if (bytes)
    Claim(bytes->size() <= 8 * file_size, "elements come from the file");
}

}  // namespace
}  // namespace addnorm::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace addnorm::fuzz;
  const std::optional<Opened> opened = Open(data, size);
  if (!opened) return 0;
  addnorm::ir::ToText(*opened->model);
  for (const addnorm::ir::Graph* graph : opened->model->AllGraphs()) {
    for (const addnorm::ir::Value* value : graph->values()) {
      if (value->initializer() != nullptr)
        ReadConstant(*opened->model->reader, *value->initializer(), size);
    }
  }
  return 0;
}
