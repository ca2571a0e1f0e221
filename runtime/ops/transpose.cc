// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Transpose, and the two ops that are a Transpose between two Reshapes.
#include <numeric>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/shape_ops.h"
#include "runtime/ops/strided_copy.h"

namespace addnorm::runtime {
namespace {

using Permutation = std::vector<int64_t>;

// True if the elements stay where they are: only dims of 1 change places.
bool KeepsOrder(const Dims& dims, const Permutation& perm) {
  int64_t last = -1;
  for (const int64_t axis : perm) {
    if (dims[axis] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

// Output 0, of the given dims: operand 0 seen as `dims`, with axis perm[i]
// becoming axis i.
absl::Status Permute(OpContext& op, const Dims& dims, const Permutation& perm,
                     Dims output_dims) {
  const Tensor& x = op.input(0);
  if (KeepsOrder(dims, perm)) {
    op.SetOutput(0, x.WithDims(std::move(output_dims)));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, x.type(), std::move(output_dims)));
  const int64_t element = ElementBytes(x);
  const Dims from = ByteStrides(dims, element);
  Dims permuted;
  for (const int64_t axis : perm) permuted.push_back(dims[axis]);
  const Dims to = ByteStrides(permuted, element);
  StridedCopy copy{
      x.data<std::byte>(), y->mutable_data<std::byte>(), element, {}};
  for (size_t i = 0; i < perm.size(); ++i)
    copy.axes.push_back({permuted[i], from[perm[i]], to[i]});
  Copy(op.threads(), std::move(copy));
  return absl::OkStatus();
}

// No product of such dims and a block's area overflows.
constexpr int64_t kMaxDim = int64_t{1} << 31;
constexpr int64_t kMaxBlock = 1 << 15;

// The side of the blocks of an op on images, whose operand 0 is checked.
absl::StatusOr<int64_t> BlockSize(const OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  const int64_t size = op.attributes().Int("blocksize", 0);
  bool fits = x.rank() == 4 && size >= 1 && size <= kMaxBlock;
  for (const int64_t dim : x.dims()) fits &= dim <= kMaxDim;
  if (!fits) {
    return OpContext::Invalid("{} with blocks of {}, expected rank 4 and ≥ 1",
                              Describe(x), size);
  }
  return size;
}

}  // namespace

absl::Status Transpose(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(1));
  const Tensor& x = op.input(0);
  Permutation perm(x.dims().size());
  std::iota(perm.rbegin(), perm.rend(), 0);
  if (const auto given = op.attributes().Ints("perm")) {
    ASSIGN_OR_RETURN(perm, NormalAxes(*given, x.rank()));
  }
  if (perm.size() != x.dims().size()) {
    return OpContext::Invalid("perm has {} axes, expected {}", perm.size(),
                              x.rank());
  }
  Dims dims;
  for (const int64_t axis : perm) dims.push_back(x.dims()[axis]);
  return Permute(op, x.dims(), perm, std::move(dims));
}

absl::Status DepthToSpace(OpContext& op) {
  ASSIGN_OR_RETURN(const int64_t block, BlockSize(op));
  const Dims& x = op.input(0).dims();
  const int64_t depth = x[1] / (block * block);
  if (depth * block * block != x[1]) {
    return OpContext::Invalid("{} channels do not make blocks of {}×{}", x[1],
                              block, block);
  }
  const std::string mode = op.attributes().String("mode", "DCR");
  Dims output = {x[0], depth, x[2] * block, x[3] * block};
  if (mode == "DCR") {
    return Permute(op, {x[0], block, block, depth, x[2], x[3]},
                   {0, 3, 4, 1, 5, 2}, std::move(output));
  }
  if (mode != "CRD") return OpContext::Invalid("mode is '{}'", mode);
  return Permute(op, {x[0], depth, block, block, x[2], x[3]},
                 {0, 1, 4, 2, 5, 3}, std::move(output));
}

absl::Status SpaceToDepth(OpContext& op) {
  ASSIGN_OR_RETURN(const int64_t block, BlockSize(op));
  const Dims& x = op.input(0).dims();
  const int64_t height = x[2] / block, width = x[3] / block;
  if (height * block != x[2] || width * block != x[3]) {
    return OpContext::Invalid("{} is not cut into blocks of {}×{}",
                              Describe(op.input(0)), block, block);
  }
  return Permute(op, {x[0], x[1], height, block, width, block},
                 {0, 3, 5, 1, 2, 4},
                 {x[0], x[1] * block * block, height, width});
}

}  // namespace addnorm::runtime
