// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/reduce_plan.h"

#include "runtime/ops/axis_split.h"

namespace addnorm::runtime {
namespace {

struct Group {
  int64_t size = 1;
  bool reduced = false;
};

std::vector<Group> GroupAxes(const Dims& dims,
                             const std::vector<bool>& reduced) {
  std::vector<Group> groups;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (groups.empty() || groups.back().reduced != reduced[i])
      groups.push_back({1, reduced[i]});
    groups.back().size = SizeProduct(groups.back().size, dims[i]);
  }
  return groups;
}

}  // namespace

ReducePlan MakeReducePlan(const Dims& dims, const std::vector<bool>& reduced) {
  ReducePlan plan;
  std::vector<Group> groups = GroupAxes(dims, reduced);
  for (const Group& group : groups) {
    int64_t& count = group.reduced ? plan.reduced_count : plan.outputs;
    count = SizeProduct(count, group.size);
  }
  if (groups.empty()) return plan;
  plan.run = groups.back().size;
  plan.run_is_reduced = groups.back().reduced;
  groups.pop_back();
  int64_t stride = plan.run;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    StridedLoops& loops = group->reduced ? plan.reduced : plan.kept;
    loops.loops.insert(loops.loops.begin(), {group->size, stride});
    loops.count = SizeProduct(loops.count, group->size);
    stride = SizeProduct(stride, group->size);
  }
  // Else there could be very many runs without elements.
  if (plan.reduced_count == 0) plan.reduced.count = 0;
  return plan;
}

}  // namespace addnorm::runtime
