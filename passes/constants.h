// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What is constant in a graph, and the values of small constants.
//
// A constant is an initializer that no caller can override, or a Constant node,
// or a Cast, CastLike, Identity, Reshape, Squeeze or Unsqueeze of one. Nothing
// is folded: the match copies such nodes into the body as they are. Only
// tensors of a few elements are read; weights never are.
//
//   Constants constants(model);
//   auto two = constants.Resolve(pow.input(1));
//   if (two.constant && two.constant->scalar() == 2.0) …
#ifndef ADDNORM_PASSES_CONSTANTS_H_
#define ADDNORM_PASSES_CONSTANTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/ir/model.h"

namespace addnorm::passes {

struct Constant {
  const ir::Value* root =
      nullptr;        // the initializer, or the Constant node's output
  ir::Tensor tensor;  // the root's elements, inline
  // In a function: the attribute of its calls that holds the one element, a
  // float. The elements are then unknown.
  std::string reference;
  std::optional<size_t>
      rank;  // of the value itself, after Reshape and the like

  // The one element of the value itself; nullopt for more or none, and if a
  // Cast on the way changes the number.
  std::optional<double> scalar;

  // The root's one element, in any numeric type.
  std::optional<double> root_scalar() const;
  // The root's elements, if it is an integer tensor.
  std::optional<std::vector<int64_t>> integers() const;
};

struct Resolution {
  std::optional<Constant> constant;
  std::vector<ir::Node*> chain;  // looked through, from the value to the root
  std::string
      reason;  // why it is not one: "'eps' can be overridden by the caller"
};

class Constants {
 public:
  explicit Constants(ir::Model& model) : model_(model) {}

  // The constant behind a value of at most kMaxElements elements.
  Resolution Resolve(const ir::Value* value);

  // False for a value that is the same in every run: a bias, a position table.
  bool DependsOnInput(const ir::Value* value);

  static constexpr int64_t kMaxElements = 64;
  // Casts and Reshapes looked through; longer chains are not exporters' work.
  static constexpr int kMaxChain = 16;

 private:
  Resolution ResolveRoot(const ir::Value* value);
  Resolution ReadTensor(const ir::Value* value, const ir::Tensor& tensor);
  bool IsOverridable(const ir::Value* value) const;

  ir::Model& model_;
  absl::flat_hash_map<const ir::Value*, bool> depends_on_input_;
};

// The nearest number that the float type has, ties to even; for normal numbers.
// Other types: the number itself.
double RoundTo(double value, ir::DataType type);

// What value_float, value_int, value_floats or value_ints of a Constant node
// stand for; nullopt for attributes of other types.
std::optional<ir::Tensor> NumbersOf(const ir::Attribute& attribute);

// True if a Cast to the type leaves the number as it is.
bool IsExactIn(double value, ir::DataType type);

// True for the nodes that Resolve looks through.
bool IsConstantForwarding(const ir::Model& model, const ir::Node& node);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_CONSTANTS_H_
