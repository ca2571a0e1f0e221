// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Any model is optimised or refused; the output can be read, and optimising it
// again changes nothing.
#include "tests/fuzz/claims.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  addnorm::fuzz::ClaimOptimises({reinterpret_cast<const char*>(data), size});
  return 0;
}
