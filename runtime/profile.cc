// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/profile.h"

#include <algorithm>
#include <map>
#include <utility>

namespace addnorm::runtime {
namespace {

template <typename Row>
std::vector<Row> SlowestFirst(std::vector<Row> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.seconds > b.seconds;
  });
  return rows;
}

}  // namespace

void Profile::BeforeNode(const Step& step, std::span<const Tensor>) {
  if (index_.try_emplace(step.node, nodes_.size()).second)
    nodes_.push_back({.node = step.node});
  running_.push_back({.start = Clock::now()});
}

void Profile::AfterNode(const Step& step, std::span<const Tensor>) {
  const Running ended = running_.back();
  running_.pop_back();
  const double all =
      std::chrono::duration<double>(Clock::now() - ended.start).count();
  const double own = std::max(all - ended.inner, 0.0);
  NodeTime& row = nodes_[index_.at(step.node)];
  row.seconds += own;
  ++row.runs;
  seconds_ += own;
  if (!running_.empty()) running_.back().inner += all;
}

std::vector<NodeTime> Profile::Nodes() const { return SlowestFirst(nodes_); }

std::vector<OpTime> Profile::Ops() const {
  std::map<std::pair<std::string, std::string>, OpTime> ops;
  for (const NodeTime& row : nodes_) {
    const ir::Node& node = *row.node;
    OpTime& op = ops[{node.domain(), node.op_type()}];
    op.domain = node.domain();
    op.op_type = node.op_type();
    op.seconds += row.seconds;
    op.runs += row.runs;
  }
  std::vector<OpTime> rows;
  for (auto& [key, op] : ops) rows.push_back(std::move(op));
  return SlowestFirst(std::move(rows));
}

}  // namespace addnorm::runtime
