// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// How the program ends when an allocation fails: at once, with one line, exit
// code 4, and without what was not complete.
//
// Not by std::bad_alloc: containers of abseil and nlohmann-json allocate where
// they must not throw, ONNX swallows exceptions and goes on without what it
// could not register, and none of them promises to be whole afterwards. What
// can do with less memory, or can say what it was for, asks std::aligned_alloc,
// which still returns nullptr (runtime/tensor.cc).
//
//   int main(int argc, char** argv) {
//     EndWhenOutOfMemory({argv, argv + argc});
#ifndef ADDNORM_TOOL_OUT_OF_MEMORY_H_
#define ADDNORM_TOOL_OUT_OF_MEMORY_H_

#include <span>

#include "tool/exit_code.h"

namespace addnorm::tool {

// For every `operator new` of the process, from now on. With --json among the
// arguments standard output gets an object then, too.
void EndWhenOutOfMemory(std::span<char* const> args);

// The answer is given, and only destructors are left: what they lack ends the
// process with its exit code.
void IgnoreOutOfMemory(ExitCode answer);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_OUT_OF_MEMORY_H_
