// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares two models by structure: do they compute the same for all inputs?
//
// It numbers the values of both (value_numbering.h) and compares the numbers of
// their outputs. If they are equal, that is a proof. If not, it walks down from
// the outputs to the places where the two begin to differ. Nothing is run.
//
//   ASSIGN_OR_RETURN(Structure structure,
//                    CompareStructure(a, b, contents, schemas));
//   if (structure.is_equal()) …
#ifndef ADDNORM_PASSES_STRUCTURE_H_
#define ADDNORM_PASSES_STRUCTURE_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "passes/ir/model.h"
#include "passes/value_numbering.h"

namespace addnorm::passes {

// What a model has at a place.
struct StructurePlace {
  const ir::Value* value = nullptr;  // nullptr: nothing, or no value
  const ir::Node* call = nullptr;    // of the function that the value is in
};

// A place where the models differ: "Sqrt making 'r'", "input 'x'".
struct StructureDifference {
  std::string place_a, place_b;  // "" where that model has nothing there
  std::string text;              // what differs
  bool is_interface = false;     // of the models' inputs or outputs
  StructurePlace a = {}, b = {};
};

struct Structure {
  // Of inputs, outputs, and of what is computed.
  std::vector<StructureDifference> differences;
  // Add and Mul nodes whose operands are swapped: equal but for the payload of
  // NaNs.
  std::vector<StructureDifference> swaps;
  // More differences than are listed.
  bool has_more = false;
  // From values of B's main graph to those of A's that are computed alike.
  absl::flat_hash_map<const ir::Value*, const ir::Value*> twins;
  // Likewise, values that are not computed alike, but stand at the same place
  // on the way from an output down to a difference, or have the same name. They
  // need not be equal; where they first are not, a difference shows.
  absl::flat_hash_map<const ir::Value*, const ir::Value*> counterparts;

  bool is_equal() const { return differences.empty(); }
};

// Errors: kUnimplemented where the models are beyond what can be compared, with
// the reason; those of reading.
absl::StatusOr<Structure> CompareStructure(const ir::Model& a,
                                           const ir::Model& b,
                                           TensorContents& contents,
                                           OperatorSchemas& schemas);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_STRUCTURE_H_
