// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/op_table.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "runtime/ops/groups.h"

namespace addnorm::runtime {
namespace {

constexpr OpTable (*kGroups[])() = {
    ActivationOps,    ArithmeticOps,   AttentionOps,   BitwiseOps,
    CastOps,          ContribOps,      ControlFlowOps, ConvolutionOps,
    CreationOps,      IndexingOps,     LogicOps,       MatMulOps,
    NormalizationOps, QuantizationOps, ReductionOps,   RmsNormOps,
    ShapeOps,         UnaryOps,        VariadicOps};

using OpIndex =
    absl::flat_hash_map<std::pair<std::string_view, std::string_view>,
                        const OpRow*>;

OpIndex BuildIndex() {
  OpIndex index;
  for (const OpRow* row : AllOps()) index[{row->domain, row->op_type}] = row;
  return index;
}

}  // namespace

std::vector<const OpRow*> AllOps() {
  std::vector<const OpRow*> rows;
  for (const auto group : kGroups) {
    for (const OpRow& row : group()) rows.push_back(&row);
  }
  return rows;
}

const OpRow* FindOp(std::string_view domain, std::string_view op_type) {
  static const OpIndex index = BuildIndex();
  const auto it = index.find({domain, op_type});
  return it == index.end() ? nullptr : it->second;
}

}  // namespace addnorm::runtime
