// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What a case of bench --kernel moves, by the model and as measured, what that
// says of the limit of the fused op, and where the model is wrong.
//
//   Limiter(result, machine).text;  // "the bandwidth of memory: fused, 91 % …"
#ifndef ADDNORM_TOOL_BENCH_TRAFFIC_H_
#define ADDNORM_TOOL_BENCH_TRAFFIC_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tool/bench_comparison.h"
#include "tool/bench_kernel.h"
#include "tool/machine_facts.h"

namespace addnorm::tool {

// Places in runtime::kPairArms.
inline constexpr size_t kPlain = 4, kStreaming = 5, kInPlace = 6;
inline constexpr size_t kCopy = 8, kStreamingCopy = 9;

struct FusedArm {
  std::string_view stores;
  size_t arm;
};
inline constexpr FusedArm kFusedArms[] = {{"plain stores", kPlain},
                                          {"streaming", kStreaming},
                                          {"in place", kInPlace}};

// What the arm moves by the model, read for ownership included.
double Bytes(const KernelCase& result, size_t arm);
double Bandwidth(const KernelCase& result, size_t arm);
double ShareOfBest(const KernelCase& result, size_t arm);  // of the probes

// What holds the fused op up: the same words for all cases alike, and a
// sentence about this one.
struct Limit {
  std::string kind;
  std::string text;
};
Limit Limiter(const KernelCase& result, const MachineFacts& machine);

// Whether plain stores read what they overwrite, as the model has it; "" with
// too few rounds.
std::string OwnershipText(const KernelCase& result);

// Pairs of arms of which the one that moves less is surely slower, where memory
// is what counts.
std::vector<ArmComparison> NotAsModelled(const KernelCase& result,
                                         const MachineFacts& machine);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_BENCH_TRAFFIC_H_
