// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/cli.h"
#include "tool/out_of_memory.h"

int main(int argc, char** argv) {
  // A process may be started without even its own name.
  char** const first = argc > 0 ? argv + 1 : argv;
  addnorm::tool::EndWhenOutOfMemory({first, argv + argc});
  return addnorm::tool::Main({first, argv + argc});
}
