// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a run goes: seconds of each node, without those of nodes
// inside it (branches, loop bodies, functions).
//
// Not a sampling profiler, and no benchmark: one run, one clock, no warm-up.
//
//   Profile profile;
//   executor = Executor::Create(model, {.observer = &profile});
//   for (const NodeTime& node : profile.Nodes()) …  // slowest first
#ifndef ADDNORM_RUNTIME_PROFILE_H_
#define ADDNORM_RUNTIME_PROFILE_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/executor.h"

namespace addnorm::runtime {

struct NodeTime {
  const ir::Node* node = nullptr;
  double seconds = 0;
  int64_t runs = 0;  // more than one in loops, and in functions called often
};

struct OpTime {
  std::string domain;
  std::string op_type;
  double seconds = 0;
  int64_t runs = 0;
};

class Profile : public RunObserver {
 public:
  void BeforeNode(const Step& step, std::span<const Tensor>) override;
  void AfterNode(const Step& step, std::span<const Tensor>) override;

  // The slowest first, else in the order of their first run.
  std::vector<NodeTime> Nodes() const;
  std::vector<OpTime> Ops() const;
  double seconds() const { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    Clock::time_point start;
    double inner = 0;  // seconds of nodes inside
  };

  std::vector<Running> running_;
  std::vector<NodeTime> nodes_;
  absl::flat_hash_map<const ir::Node*, size_t> index_;
  double seconds_ = 0;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_PROFILE_H_
