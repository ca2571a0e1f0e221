// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// --restarts: the same measurement in further processes, whose memory lies
// elsewhere. What differs from process to process is part of the noise, and no
// number of rounds in one process shows it.
//
//   RETURN_IF_ERROR(AddRestarts(4, {&bench.whole, &bench.parts}));
#ifndef ADDNORM_TOOL_BENCH_RESTARTS_H_
#define ADDNORM_TOOL_BENCH_RESTARTS_H_

#include <vector>

#include "absl/status/status.h"
#include "tool/bench_result.h"

namespace addnorm::tool {

// Runs this process's own command `count` times, each with --json, and appends
// the times of cases[i].arms[j] of what it prints to cases[i]->arms[j].
absl::Status AddRestarts(int count, const std::vector<BenchCase*>& cases);

// The command without --restarts and --html, and with --json, after the word
// `bench`.
std::vector<std::string> RestartCommand(std::vector<std::string> words);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_RESTARTS_H_
