// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// abseil's containers poison memory of their own that Debian's library, which
// is not instrumented, does not clean again. Short stacks of allocations are
// twice as fast.
extern "C" const char* __asan_default_options() {
  return "allow_user_poisoning=0:malloc_context_size=4";
}
