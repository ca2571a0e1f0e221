// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// How operands of several shapes meet in one: numpy's rules, as a walk over
// runs of contiguous elements.
//
// It knows offsets, not elements. Axes that every operand walks alike become
// one, so operands of one shape are a single run, and a row under a matrix is a
// run a row. Within a run an operand either walks along or stands still.
//
//   ASSIGN_OR_RETURN(const auto plan, BroadcastPlan::Of({&a, &b}));
//   plan.ForEachRun(begin, end, [&](int64_t out, const int64_t* at,
//                                   int64_t length) {
//     // out[out + i] is of a[at[0] + i * plan.step(0)] and so on
//   });
#ifndef ADDNORM_RUNTIME_BROADCAST_H_
#define ADDNORM_RUNTIME_BROADCAST_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/tensor.h"

namespace addnorm::runtime {

class BroadcastPlan {
 public:
  // kInvalidArgument, with all shapes, where they do not fit together.
  static absl::StatusOr<BroadcastPlan> Of(
      std::span<const Tensor* const> operands);
  static absl::StatusOr<BroadcastPlan> Of(
      std::initializer_list<const Tensor*> operands) {
    return Of(std::span(operands.begin(), operands.size()));
  }

  const Dims& dims() const { return dims_; }  // of the result
  int64_t count() const { return count_; }
  // Distance between neighbours of a run in this operand: 1 or 0.
  int64_t step(size_t operand) const { return axes_.back().strides[operand]; }

  // Calls f(first element of the result, first element of each operand, length)
  // for the runs of the result's elements [begin, end), in order.
  template <typename F>
  void ForEachRun(int64_t begin, int64_t end, F&& f) const {
    if (begin >= end) return;
    Cursor cursor(*this, begin);
    while (begin < end) {
      const int64_t length = std::min(cursor.left(), end - begin);
      f(begin, cursor.offsets(), length);
      begin += length;
      if (begin < end) cursor.Next();
    }
  }

 private:
  // An axis of the walk, the outermost first; the last one is the run.
  struct Axis {
    int64_t length = 1;
    std::vector<int64_t> strides;  // by operand, in elements
  };

  class Cursor {
   public:
    Cursor(const BroadcastPlan& plan, int64_t element);
    const int64_t* offsets() const { return offsets_.data(); }
    int64_t left() const { return left_; }  // of the run
    void Next();                            // to the start of the next run

   private:
    void Move(size_t axis, int64_t steps);

    const BroadcastPlan& plan_;
    std::vector<int64_t> index_;    // by axis
    std::vector<int64_t> offsets_;  // by operand
    int64_t left_;
  };

  void AddAxis(Axis axis);

  Dims dims_;
  int64_t count_ = 0;
  std::vector<Axis> axes_;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_BROADCAST_H_
