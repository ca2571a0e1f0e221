// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/expansion.h"

#include <utility>

#include "passes/ir/status_macros.h"
#include "runtime/ops/axes.h"
#include "runtime/ops/strided_copy.h"

namespace addnorm::runtime {
namespace {

bool Expands(const Dims& from, const Dims& to) {
  if (from.size() > to.size()) return false;
  const size_t added = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 1 && from[i] != to[added + i]) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<Tensor> Expanded(OpContext& op, const Tensor& tensor,
                                const Dims& dims) {
  Dims own = tensor.dims();
  while (own.size() > dims.size() && own.front() == 1) own.erase(own.begin());
  if (!Expands(own, dims)) {
    return OpContext::Invalid("{} does not expand to {}", Describe(tensor),
                              ToString(dims));
  }
  const Tensor from = tensor.WithDims(own);
  if (own == dims) return from;
  ASSIGN_OR_RETURN(Tensor to, op.Scratch(tensor.type(), dims));
  CopyExpanded(op.threads(), from, to);
  return to;
}

void CopyExpanded(ThreadPool& threads, const Tensor& from, Tensor& to) {
  const int64_t element = ElementBytes(from);
  const Dims from_steps = ByteStrides(from.dims(), element);
  const Dims to_steps = ByteStrides(to.dims(), element);
  StridedCopy copy{
      from.data<std::byte>(), to.mutable_data<std::byte>(), element, {}};
  const size_t added = to_steps.size() - from_steps.size();
  for (size_t i = 0; i < to_steps.size(); ++i) {
    const bool repeats = i < added || from.dims()[i - added] == 1;
    copy.axes.push_back(
        {to.dims()[i], repeats ? 0 : from_steps[i - added], to_steps[i]});
  }
  Copy(threads, std::move(copy));
}

}  // namespace addnorm::runtime
