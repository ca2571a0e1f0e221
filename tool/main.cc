// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/cli.h"

int main(int argc, char** argv) {
  // A process may be started without even its own name.
  char** const first = argc > 0 ? argv + 1 : argv;
  return addnorm::tool::Main({first, argv + argc});
}
