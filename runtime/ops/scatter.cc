// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Scatter, ScatterElements and ScatterND: updates written, or combined with
// what is there, at computed places.
//
// Updates of one place are made in the order in which they are given, on one
// thread, each rounded to the type of the elements.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/index_offsets.h"
#include "runtime/ops/indexing_ops.h"
#include "runtime/ops/strided_copy.h"
#include "runtime/wrapping.h"

namespace addnorm::runtime {
namespace {

struct AddUpdate {
  template <typename C>
  static C Apply(C old, C update) {
    return WrappingAdd(old, update);
  }
};

struct MultiplyUpdate {
  template <typename C>
  static C Apply(C old, C update) {
    return WrappingMultiply(old, update);
  }
};

// A NaN on either side is the result.
struct MaxUpdate {
  template <typename C>
  static C Apply(C old, C update) {
    return old > update || old != old ? old : update;
  }
};

struct MinUpdate {
  template <typename C>
  static C Apply(C old, C update) {
    return old < update || old != old ? old : update;
  }
};

// Where the updates go: run i of them to element offsets[i].
struct Target {
  const std::vector<int64_t>& offsets;
  int64_t run;
};

template <typename Update>
absl::Status Combine(OpContext& op, const Target& target, Tensor& y) {
  return op.ForType<ADDNORM_NUMBER_TYPES>(y, [&]<typename T>() {
    const T* update = op.input(2).data<T>();
    for (const int64_t offset : target.offsets) {
      T* at = y.mutable_data<T>() + offset;
      for (int64_t i = 0; i < target.run; ++i, ++update)
        at[i] = Rounded<T>(Update::Apply(Widen(at[i]), Widen(*update)));
    }
  });
}

absl::Status Overwrite(OpContext& op, const Target& target, Tensor& y) {
  const std::byte* update = op.input(2).data<std::byte>();
  const int64_t element = ElementBytes(y);
  const size_t bytes = static_cast<size_t>(target.run * element);
  for (const int64_t offset : target.offsets) {
    std::memcpy(y.mutable_data<std::byte>() + offset * element, update, bytes);
    update += bytes;
  }
  return absl::OkStatus();
}

struct Reduction {
  std::string_view name;
  absl::Status (*run)(OpContext&, const Target&, Tensor&);
};

constexpr Reduction kReductions[] = {
    {"none", Overwrite},
    {"add", Combine<AddUpdate>},
    {"mul", Combine<MultiplyUpdate>},
    {"max", Combine<MaxUpdate>},
    {"min", Combine<MinUpdate>},
};

// Operand 0 with operand 2 scattered into it.
absl::Status Scatter(OpContext& op, const Target& target,
                     const Dims& update_dims) {
  const std::string name = op.attributes().String("reduction", "none");
  const auto* reduction =
      std::find_if(std::begin(kReductions), std::end(kReductions),
                   [&](const Reduction& row) { return row.name == name; });
  if (reduction == std::end(kReductions))
    return OpContext::Invalid("reduction is '{}'", name);
  const Tensor& updates = op.input(2);
  if (updates.type() != op.input(0).type() || updates.dims() != update_dims) {
    return OpContext::Invalid(
        "the updates are {}, expected {}{}", Describe(updates),
        ir::DataTypeName(op.input(0).type()), ToString(update_dims));
  }
  ASSIGN_OR_RETURN(Tensor * y, OutputLikeInput(op));
  if (updates.count() == 0) return absl::OkStatus();
  return reduction->run(op, target, *y);
}

}  // namespace

absl::Status ScatterElements(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(3));
  ASSIGN_OR_RETURN(
      const int64_t axis,
      NormalAxis(op.attributes().Int("axis", 0), op.input(0).rank()));
  ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                   ElementOffsets(op, 1, axis));
  return Scatter(op, {offsets, 1}, op.input(1).dims());
}

absl::Status ScatterNd(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(3));
  ASSIGN_OR_RETURN(const TupleOffsets tuples, OffsetsOfTuples(op, 1, 0));
  Dims dims = tuples.outer_dims;
  dims.insert(dims.end(), tuples.inner_dims.begin(), tuples.inner_dims.end());
  return Scatter(op, {tuples.offsets, tuples.run}, dims);
}

}  // namespace addnorm::runtime
