// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Any text: parsed as a model or refused. What ONNX's parser makes of it is a
// model like any other, so the claims about optimising hold, too.
#include "proto/text.h"
#include "tests/fuzz/claims.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace addnorm::fuzz;
  const auto bytes = Answered(addnorm::proto::SerializeText(
      {reinterpret_cast<const char*>(data), size}));
  if (bytes) ClaimOptimises(*bytes);
  return 0;
}
