// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the row kernels of a model's fused ops with their bodies run node by
// node, by bits: on random and adversarial rows, of the model's own length and
// of ragged neighbours, on every SIMD target, with one thread and several, in
// place and not.
//
//   ASSIGN_OR_RETURN(KernelCheck check, CheckKernels(model, calls, seed));
#ifndef ADDNORM_TOOL_KERNEL_CHECK_H_
#define ADDNORM_TOOL_KERNEL_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/ir/model.h"
#include "runtime/compare.h"
#include "runtime/tensor.h"

namespace addnorm::tool {

// A call of a fused op, and what it is given.
struct FusedCall {
  const ir::Node* node = nullptr;
  std::vector<ir::DataType> types;
  size_t rank = 0;     // of the operands of the Add
  int64_t length = 0;  // of a row
  // The last operand's value where that is epsilon, else absent.
  runtime::Tensor epsilon;
};

struct FusedCalls {
  // Each kind once: by function, types and length.
  std::vector<FusedCall> kinds;
  int64_t calls = 0;
  // Calls that are left out, because the model does not say their types or row
  // length, or because their attributes are a caller's.
  int64_t unknown = 0;
};
FusedCalls FusedCallsOf(ir::Model& model);

struct KernelResult {
  std::string op;    // the function's name
  std::string type;  // "float16 x 4096"
  int64_t words = 0;
  bool has_kernel = false;  // else it is run node by node in any case
  runtime::Comparison comparison;
  std::string where;  // of the first difference: target, threads, length
};

struct KernelCheck {
  std::vector<KernelResult> results;
  std::vector<std::string> targets;  // SIMD targets that were compared
  int64_t words = 0;
  int64_t calls_left_out = 0;  // FusedCalls::unknown
  bool is_equal() const;
};

absl::StatusOr<KernelCheck> CheckKernels(const ir::Model& model,
                                         const std::vector<FusedCall>& calls,
                                         uint64_t seed);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_KERNEL_CHECK_H_
