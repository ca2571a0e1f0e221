// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Appends new rows of keys or values to those of earlier steps.
//
//   present[batch, head] = past[batch, head] then rows[batch, head]
#ifndef ADDNORM_RUNTIME_OPS_KV_CACHE_H_
#define ADDNORM_RUNTIME_OPS_KV_CACHE_H_

#include <algorithm>

#include "runtime/grain.h"
#include "runtime/ops/attention_core.h"

namespace addnorm::runtime {

// past: [batch, heads, past_rows, size], or nullptr where there are none;
// present: [batch, heads, past_rows + new_rows, size].
template <typename T>
void AppendRows(OpContext& op, const T* past, int64_t past_rows,
                const HeadRows<const T>& rows, int64_t new_rows,
                const Dims& present_dims, T* present) {
  const int64_t heads = present_dims[1], size = present_dims[3];
  const int64_t length = past_rows + new_rows;
  if (ElementCount(present_dims).value_or(0) == 0) return;
  op.threads().ParallelFor(present_dims[0] * heads, LineGrain(length * size),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t i = begin; i < end; ++i) {
                               T* to = present + i * length * size;
                               if (past_rows > 0)
                                 std::copy_n(past + i * past_rows * size,
                                             past_rows * size, to);
                               to += past_rows * size;
                               for (int64_t row = 0; row < new_rows; ++row)
                                 std::copy_n(rows.At(i / heads, i % heads, row),
                                             size, to + row * size);
                             }
                           });
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_KV_CACHE_H_
