// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// How constants differ that stand at the same place of two models: in how many
// elements, and what the first of them is. For people; that they differ is
// already known.
//
//   ConstantDifferences(a, b).Describe(structure.differences);
//   // "another constant float[32]: 1 of 32 elements differs; first [5]: 0.25
//   // against 0.5"
#ifndef ADDNORM_TOOL_CONSTANT_DIFFERENCE_H_
#define ADDNORM_TOOL_CONSTANT_DIFFERENCE_H_

#include <cstdint>
#include <vector>

#include "passes/structure.h"
#include "tool/fusion.h"

namespace addnorm::tool {

class ConstantDifferences {
 public:
  ConstantDifferences(const LoadedModel& a, const LoadedModel& b)
      : a_(a), b_(b) {}

  // Replaces the texts of those that are about constants. Where elements cannot
  // be read, or are too many to read them for a text, it stays.
  void Describe(std::vector<passes::StructureDifference>& differences);

 private:
  void Describe(passes::StructureDifference& difference);

  const LoadedModel& a_;
  const LoadedModel& b_;
  // Bytes that may still be read; a model may differ in all its weights.
  uint64_t budget_ = uint64_t{256} << 20;
};

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_CONSTANT_DIFFERENCE_H_
