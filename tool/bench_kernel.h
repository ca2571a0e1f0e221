// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// bench --kernel: the pair residual Add + RMSNorm by itself, for every
// combination of recipe, type, shape, state of the caches and threads.
//
//   ASSIGN_OR_RETURN(sweep.shapes, ParseShapes({"512x4096"}));
//   ASSIGN_OR_RETURN(std::vector<KernelCase> cases, BenchKernels(sweep));
#ifndef ADDNORM_TOOL_BENCH_KERNEL_H_
#define ADDNORM_TOOL_BENCH_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/pair_arms.h"
#include "tool/bench_result.h"
#include "tool/bench_sweep.h"
#include "tool/machine_usage.h"
#include "tool/onnx_runtime.h"

namespace addnorm::tool {

struct KernelSweep {
  std::vector<std::string> recipes = {"reciprocal"};
  std::vector<ir::DataType> types;
  std::vector<RowsShape> shapes;
  std::vector<runtime::CacheState> caches;
  std::vector<int> threads;
  double seconds = 1;  // for each case
  size_t least_rounds = 1;
  uint64_t seed = 0;
  size_t cold_bytes = 0;             // 0: by the machine
  bool pins = true;                  // threads to cores
  const OnnxRuntime* ort = nullptr;  // its arms too, if there is one
  // Sees cases done, with a fraction, and all.
  std::function<void(double done, size_t total)> on_progress = nullptr;
};

struct KernelCase {
  std::string recipe;
  RowsShape shape;
  runtime::PairSetting setting;
  size_t tensor_bytes = 0;
  size_t buffer_sets = 0;
  // Not with several threads, nor where short calls are timed one by one.
  bool uses_processor_time() const;
  BenchCase times = {};  // arms in the order of runtime::kPairArms, then others
  std::vector<OtherArm> others = {};
  std::vector<std::string> not_run = {};  // other arms, with their reasons
  std::vector<int> cores = {};            // that threads were pinned to
  MachineUsage usage = {};
};

// Each case: the bits of all arms are compared, then they are timed.
absl::StatusOr<std::vector<KernelCase>> BenchKernels(const KernelSweep& sweep);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_KERNEL_H_
