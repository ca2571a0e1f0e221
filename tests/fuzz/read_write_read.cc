// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A model that no pass edited is written as the bytes that were read, and these
// are read as the same model.
#include "passes/ir/printer.h"
#include "proto/export.h"
#include "proto/rope.h"
#include "tests/fuzz/claims.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace addnorm::fuzz;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::optional<Opened> opened = Open(bytes);
  if (!opened) return 0;
  const auto rope =
      Expected(addnorm::proto::Export(*opened->file, *opened->model), "export");
  const std::string written = Expected(rope.Flatten(*opened->file), "flatten");
  Claim(written == bytes, "what is not edited is written as it was");
  Claim(addnorm::ir::ToText(*Reopen(written).model) ==
            addnorm::ir::ToText(*opened->model),
        "the same bytes are the same model");
  return 0;
}
