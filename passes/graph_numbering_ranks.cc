// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of GraphNumbering that knows ranks: in how far a constant's own
// counts.
#include <algorithm>
#include <string_view>
#include <vector>

#include "passes/graph_numbering.h"

namespace addnorm::passes {
namespace {

// Elementwise ops that broadcast: an operand of one element may have any rank
// up to the other's.
constexpr std::string_view kBroadcastOps[] = {"Add", "Sub", "Mul", "Div",
                                              "Pow"};
// Results have the rank of the first operand.
constexpr std::string_view kKeepRank[] = {"Cast",       "CastLike", "Sqrt",
                                          "Reciprocal", "Neg",      "Tanh",
                                          "Softmax",    "Sigmoid"};
}  // namespace

// From what operators do, never from declared types of inner values: those may
// be wrong, and values of one number may be declared in several ways.
size_t GraphNumbering::LeastRank(const ir::Node& node,
                                 const std::vector<Number>& operands) {
  if (!node.domain().empty() || operands.empty()) return 0;
  const auto of = [&](Number number) -> size_t {
    const auto it = numbering_.least_ranks_.find(number);
    return it == numbering_.least_ranks_.end() ? 0 : it->second;
  };
  if (IsOneOf(kBroadcastOps, node)) {
    size_t rank = 0;
    for (const Number operand : operands) rank = std::max(rank, of(operand));
    return rank;
  }
  if (IsOneOf(kKeepRank, node)) return of(operands[0]);
  if (node.Is("", "MatMul") && operands.size() == 2) {
    const size_t rank = std::max(of(operands[0]), of(operands[1]));
    return std::min(of(operands[0]), of(operands[1])) >= 2 ? rank : 0;
  }
  if (node.op_type().starts_with("Reduce") && KeepsDims(node))
    return std::max<size_t>(of(operands[0]), HasAxis(node, operands) ? 1 : 0);
  return 0;
}

bool GraphNumbering::KeepsDims(const ir::Node& node) const {
  const ir::Attribute* written = node.attribute("keepdims");
  if (written == nullptr) return true;
  const ir::Attribute* attribute = Resolve(*written);
  if (attribute == nullptr) return true;
  const auto* keeps = attribute->get<int64_t>();
  return keeps != nullptr && *keeps == 1;
}

// Of a reduction: with an axis, there is one dimension at least.
bool GraphNumbering::HasAxis(const ir::Node& node,
                             const std::vector<Number>& operands) const {
  const ir::Attribute* written = node.attribute("axes");
  const ir::Attribute* attribute =
      written == nullptr ? nullptr : Resolve(*written);
  const auto* axes =
      attribute == nullptr ? nullptr : attribute->get<std::vector<int64_t>>();
  if (axes != nullptr) return !axes->empty();
  if (operands.size() < 2) return false;
  const ValueNumbering::SmallConstant* constant =
      numbering_.FindConstant(operands[1]);
  return constant != nullptr && !constant->bytes.empty();
}

// [1,1] and a scalar are the same beside an operand of rank 2 or more.
void GraphNumbering::LoosenRanks(const ir::Node& node,
                                 std::vector<Number>& operands) {
  if (!IsOneOf(kBroadcastOps, node) || operands.size() != 2) return;
  for (const size_t i : {0u, 1u}) {
    const ValueNumbering::SmallConstant* constant =
        numbering_.FindConstant(operands[i]);
    const auto rank = numbering_.least_ranks_.find(operands[1 - i]);
    if (constant == nullptr || constant->dims.empty() ||
        rank == numbering_.least_ranks_.end() ||
        rank->second < constant->dims.size())
      continue;
    const bool is_one =
        std::all_of(constant->dims.begin(), constant->dims.end(),
                    [](int64_t dim) { return dim == 1; });
    if (!is_one) continue;
    operands[i] = numbering_.InternConstant(
        {constant->type, {}, constant->bytes, constant->number}, nullptr,
        side_);
  }
}

}  // namespace addnorm::passes
