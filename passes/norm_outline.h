// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What looks like a norm, however it is spelled: a reduction over a power of a
// value, whose result, inverted, multiplies or divides the same value. Only for
// reports: no match depends on it.
//
// It begins at a reduction, because those are few, and takes a bounded number
// of steps back to what is squared and forth to what is divided. Softmax has no
// power, an average pooling no inverse, a loss no product: none has an outline.
//
//   NormOutliner outliner(model, constants);
//   if (auto outline = outliner.From(reduce_mean)) Report(outline->intruder);
#ifndef ADDNORM_PASSES_NORM_OUTLINE_H_
#define ADDNORM_PASSES_NORM_OUTLINE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/constants.h"
#include "passes/ir/model.h"

namespace addnorm::passes {

struct NormOutline {
  ir::Node* power = nullptr;  // the square; the reduction, if that squares
  ir::Node* reduction = nullptr;
  ir::Node* product = nullptr;  // where the value is multiplied or divided
  ir::Value* x = nullptr;       // the value, as far back as it goes: a sum
  // A LayerNorm: x is a value minus its mean, or, of a variance (there is no
  // product then), the square of a mean is subtracted.
  bool is_centred = false;
  bool is_variance = false;
  // "Abs 'a' stands between the square and the mean"; "" if nothing does.
  std::string intruder;
};

// Operators that change one value, from where it is read back to where it is
// made.
struct WayBack {
  std::vector<ir::Node*> nodes;    // the last one first
  std::vector<ir::Value*> values;  // values[i + 1] is what nodes[i] changes
};

class NormOutliner {
 public:
  NormOutliner(ir::Model& model, Constants& constants)
      : model_(model), constants_(constants) {}

  std::optional<NormOutline> From(ir::Node* reduction);

  // Through operators with one operand that is not constant, in one graph.
  WayBack Back(ir::Value* value, size_t max_steps);
  // True if a chain of operators leads from the node to an output of its graph.
  bool LeadsToOutput(const ir::Node& node);

 private:
  struct Squared;
  struct Divided;
  struct Step;
  std::vector<ir::Value*> Computed(const ir::Node& node);
  ir::Value* ChangedOperand(const ir::Node& node);
  bool TakeSquare(ir::Node* node, Squared& squared);
  std::optional<Squared> FindSquared(ir::Node* reduction);
  bool TakeProduct(const WayBack& way, Squared& squared);
  bool TakePower(const WayBack& way, Squared& squared);
  std::optional<Divided> FindDivided(const Squared& squared);
  bool IsVariance(const Squared& squared);
  // Adds the readers of the step's result; the last one, if that is a product.
  std::optional<Divided> TakeReaders(const Squared& squared, size_t step,
                                     std::vector<Step>& steps);
  std::optional<Divided> ProductAt(const ir::Use& use, const Squared& squared,
                                   const Step& last,
                                   const std::vector<Step>& steps);
  std::optional<std::vector<ir::Node*>> WayToX(ir::Value* from,
                                               const Squared& squared);
  // The first operator that no spelling has, and the steps it is between.
  std::string Intruder(const Squared& squared, const Divided& divided) const;
  std::string Between(const std::vector<ir::Node*>& nodes,
                      std::string_view from, std::string_view to) const;
  std::string BehindMean(const std::vector<ir::Node*>& nodes) const;

  ir::Model& model_;
  Constants& constants_;
};

// ReduceMean and its like, and pooling over everything.
bool IsAveraging(const ir::Node& node);

// A value minus its own mean: the beginning of a LayerNorm.
bool IsCentring(const ir::Node& node);

}  // namespace addnorm::passes

#endif  // ADDNORM_PASSES_NORM_OUTLINE_H_
