// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers for values, such that two values with one number are equal in every
// run, also across models.
//
// A value's number stands for its whole expression: the operator with its
// version and attributes (absent ones as their defaults), and the numbers of
// its operands. Expressions are interned, so equality of numbers is a proof and
// no hash. Calls are looked into, Identities looked through; constants count by
// type, shape and elements, whether initializer, Constant node or a Cast or
// Reshape of one. It does not find algebra: x + 0 is not x.
//
//   ValueNumbering numbering(contents, schemas, {});
//   ASSIGN_OR_RETURN(auto a, numbering.NumberOutputs(model_a, 0));
//   ASSIGN_OR_RETURN(auto b, numbering.NumberOutputs(model_b, 1));
//   if (a == b) …
#ifndef ADDNORM_PASSES_VALUE_NUMBERING_H_
#define ADDNORM_PASSES_VALUE_NUMBERING_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "passes/ir/expanded_size.h"
#include "passes/ir/model.h"

namespace addnorm::passes {

using Number = int32_t;
inline constexpr Number kAbsent = -1;

// The two models that are compared: 0 and 1.
using Side = int;

// Large constants by their contents, which this box cannot read.
class TensorContents {
 public:
  virtual ~TensorContents() = default;
  // A number for the tensor's elements: the same for equal ones, as far as the
  // other side's tensor of the same type and dims is concerned that has the
  // same name or place, or equal elements.
  virtual absl::StatusOr<int32_t> Classify(Side side,
                                           const ir::Tensor& tensor) = 0;
};

// What ONNX says of operators.
class OperatorSchemas {
 public:
  virtual ~OperatorSchemas() = default;
  // The default of an attribute; nullptr if it has none or is not known.
  virtual const ir::Attribute* Default(std::string_view domain,
                                       std::string_view op_type,
                                       int64_t version,
                                       std::string_view attribute) = 0;
  // The version in which the operator last changed, as of that operator set.
  virtual int64_t SinceVersion(std::string_view domain,
                               std::string_view op_type, int64_t version) = 0;
};

// What a number stands for, for reports.
struct Expression {
  std::string label;  // "Add", "Cast<to = 1>", "input 'x'", …
  std::vector<Number> operands;
  int output = 0;
  // The first value with this number on each side; nullptr if there is none.
  std::array<const ir::Value*, 2> values = {};
  // Where that value is in a function: the call that leads there, in the main
  // graph or a subgraph of it; nullptr: in no function.
  std::array<const ir::Node*, 2> calls = {};
};

struct NumberingOptions {
  // Add and Mul of swapped operands get one number; they are equal but for the
  // payload of NaNs.
  bool commutes = false;
  // Off, for models whose calls expand to too much: a call of a large function
  // is one expression. Then values may be equal and have two numbers.
  bool expands_calls = true;
  // Inputs with an initializer are the constant, as they are before version 4
  // of the IR.
  bool inputs_keep_defaults = false;
};

class ValueNumbering {
 public:
  ValueNumbering(TensorContents& contents, OperatorSchemas& schemas,
                 const NumberingOptions& options);
  ~ValueNumbering();

  // Numbers of the graph's outputs. kUnimplemented where the calls of functions
  // expand to too many nodes.
  absl::StatusOr<std::vector<Number>> NumberOutputs(const ir::Model& model,
                                                    Side side);

  // Numbers of the values of a main graph, of the last model of that side.
  const absl::flat_hash_map<const ir::Value*, Number>& numbers(
      Side side) const {
    return main_numbers_[static_cast<size_t>(side)];
  }

  const Expression& expression(Number number) const {
    return expressions_[static_cast<size_t>(number)];
  }
  // With commutes: nodes that were met with their operands in both orders.
  const std::set<Number>& swapped() const { return swapped_; }
  // Without expands_calls: some call is one expression.
  bool left_calls_whole() const { return left_calls_whole_; }

 private:
  friend class GraphNumbering;
  // A small constant. One floating-point number counts by its value, so that a
  // Cast that keeps it only changes the type.
  struct SmallConstant {
    ir::DataType type = ir::DataType::kUndefined;
    std::vector<int64_t> dims;
    std::string bytes;
    std::optional<double> number;
  };

  Number Intern(std::string key, Expression expression);
  Number InternConstant(SmallConstant constant, const ir::Value* value,
                        Side side);
  const SmallConstant* FindConstant(Number number) const;

  TensorContents& contents_;
  OperatorSchemas& schemas_;
  NumberingOptions options_;
  std::deque<Expression> expressions_;
  absl::flat_hash_map<std::string, Number> numbers_;
  absl::flat_hash_map<Number, SmallConstant> constants_;
  // A rank that each value with this number has at least.
  absl::flat_hash_map<Number, size_t> least_ranks_;
  std::array<absl::flat_hash_map<const ir::Value*, Number>, 2> main_numbers_;
  std::set<Number> swapped_;
  int64_t called_nodes_ = 0;
  const ir::Node* outer_call_ = nullptr;
  // Results of calls, by function, operands and attributes; of one model.
  absl::flat_hash_map<std::string, std::vector<Number>> calls_;
  // Random nodes met so far, by side and place.
  std::map<std::pair<Side, std::string>, int> random_nodes_;
  int64_t random_count_ = 0;
  // Of whole calls: what functions make of their parameters.
  absl::flat_hash_map<std::string, std::vector<Number>> bodies_;
  bool left_calls_whole_ = false;
  std::optional<ir::ExpandedSizes> sizes_;  // of that model
};

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_VALUE_NUMBERING_H_
