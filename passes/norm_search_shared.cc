// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Casts that are copied into the body, since others read them too. The copies
// round as one Cast did, but ONNX Runtime does not leave all Casts alone, even
// with optimisation disabled. It puts a Cast to float before operators that
// have no float16 kernel, and takes it away again together with a Cast to
// float16 before it: the operator then reads what nobody rounded. It does not
// if a Cast of the model reads the float16 value too. So the bits stay as they
// were only where the readers inside and those outside are treated as all of
// them together are.
//
// Its rules: onnxruntime/core/optimizer/insert_cast_transformer.cc,
// RemoveDuplicateCastTransformer.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "passes/norm_search.h"
#include "passes/operators.h"

namespace addnorm::passes {
namespace {

using ir::DataType;

// Who reads a float16 value, for ONNX Runtime.
class Readers {
 public:
  explicit Readers(const ir::Model& model) : model_(model) {}

  void Add(const ir::Use& use);
  // A Cast to another type: the value is rounded for all.
  bool has_cast() const { return has_cast_; }
  // One that may see the value as it was before rounding.
  bool has_operator() const { return has_operator_; }

 private:
  void AddInCall(const ir::Function& callee, size_t index);

  const ir::Model& model_;
  // Parameters that were looked at: calls can branch.
  absl::flat_hash_set<const ir::Value*> seen_;
  int depth_ = 0;
  bool has_cast_ = false;
  bool has_operator_ = false;
};

// Functions that call functions …: none is deeper in real models.
constexpr int kMaxCallDepth = 16;

void Readers::Add(const ir::Use& use) {
  const ir::Node& node = *use.node;
  const ir::Function* callee =
      IsStandardOp(model_, node)
          ? nullptr
          : model_.FindFunction(node.domain(), node.op_type(), node.overload);
  if (callee != nullptr && depth_ < kMaxCallDepth) {
    AddInCall(*callee, static_cast<size_t>(use.index));
  } else if (node.Is("", "Cast") || node.Is("", "CastLike")) {
    has_cast_ |= use.index == 0 && CastTarget(node) != DataType::kFloat16;
  } else if (!node.Is("", "Identity")) {  // one is left as it is
    has_operator_ = true;
  }
}

// Functions are inlined first, so what counts is who reads the value there.
void Readers::AddInCall(const ir::Function& callee, size_t index) {
  const auto& inputs = callee.body.inputs();
  if (index >= inputs.size() || !seen_.insert(inputs[index]).second) return;
  ++depth_;
  for (const ir::Use& use : inputs[index]->uses()) {
    if (use.node->graph() == &callee.body) Add(use);
  }
  --depth_;
}

// A sum, or a Cast of one, that more nodes read is no model's: each norm of it
// would look at all of them.
constexpr size_t kMostReaders = 1024;

// True if the operator gets a Cast in front, so that it is not one that keeps
// the rounding of what it reads. Others may have a float16 kernel.
bool LacksFloat16Kernel(const ir::Node& node) {
  constexpr std::string_view kOps[] = {"Add", "Sub", "Mul", "Div", "Pow"};
  return node.domain().empty() && std::find(std::begin(kOps), std::end(kOps),
                                            node.op_type()) != std::end(kOps);
}

}  // namespace

bool NormSearch::CheckShared(const ir::Node& cast) {
  if (cast.Is("", "Identity")) return true;
  return CastTarget(cast) == DataType::kFloat16 ? CheckNarrowed(cast)
                                                : CheckWidened(cast);
}

bool NormSearch::FailOfReaders(const ir::Value& value) {
  return Fail("'{}' is read by {} nodes, too many to tell how each rounds it",
              value.name(), value.uses().size());
}

// The Cast and its copy must round for as many operators as the Cast alone.
bool NormSearch::CheckNarrowed(const ir::Node& cast) {
  const DataType from = cast.input(0)->type.element;
  if (from == DataType::kFloat16) return true;
  if (from == DataType::kUndefined) needs_type_ = true;
  const ir::Value& half = *cast.output(0);
  if (half.uses().size() > kMostReaders) return FailOfReaders(half);
  Readers inside(model_);
  Readers outside(model_);
  for (const ir::Use& use : half.uses()) {
    // No Cast is taken away over the border of a graph.
    if (use.node->graph() != graph_) continue;
    if (IsInner(use.node)) inside.Add(use);
    if (IsOutside(use.node)) outside.Add(use);
  }
  // From double, a result of the graph is rounded for all readers too.
  const bool is_kept = half.is_graph_output() && from != DataType::kFloat &&
                       from != DataType::kUndefined;
  const bool is_rounded = inside.has_cast() || outside.has_cast() || is_kept;
  const bool changes_inside =
      inside.has_operator() && inside.has_cast() != is_rounded;
  const bool changes_outside =
      outside.has_operator() && (outside.has_cast() || is_kept) != is_rounded;
  return (!changes_inside && !changes_outside) ||
         Fail(
             "'{}' is read by Casts and operators, of which some are outside "
             "the "
             "norm: ONNX Runtime would not round it for all",
             half.name());
}

// A Cast of a float16 sum sees the sum as it was before rounding, unless its
// result is one of the graph and the sum is needed in float16.
bool NormSearch::CheckWidened(const ir::Node& cast) {
  const ir::Value& sum = *result_.x;
  if (cast.input(0) != &sum || !cast.output(0)->is_graph_output() ||
      sum.type.element != DataType::kFloat16) {
    return true;
  }
  if (sum.uses().size() > kMostReaders) return FailOfReaders(sum);
  const auto is_unrounded = [&](const ir::Use& use) {
    const bool is_cast =
        use.node->Is("", "Cast") || use.node->Is("", "CastLike");
    return use.node->graph() == graph_ &&
           (is_cast || LacksFloat16Kernel(*use.node));
  };
  const bool is_rounded =
      sum.is_graph_output() ||
      !std::all_of(sum.uses().begin(), sum.uses().end(), is_unrounded);
  if (!is_rounded) return true;
  return Fail(
      "'{}' is a graph output, made of '{}': ONNX Runtime would round the sum "
      "for the one and not for the norm",
      cast.output(0)->name(), sum.name());
}

}  // namespace addnorm::passes
