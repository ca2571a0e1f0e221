// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The sizes of an attention, and where the rows of its heads are in a tensor.
//
// It checks nothing: that is the part of the op that knows the operands.
//
//   HeadRows<const float> q = HeadMajor(x.data<float>(), heads, rows, size);
//   Use(q.At(batch, head, row));  // `size` elements
#ifndef ADDNORM_RUNTIME_OPS_HEAD_ROWS_H_
#define ADDNORM_RUNTIME_OPS_HEAD_ROWS_H_

#include <cstdint>

namespace addnorm::runtime {

struct AttentionShape {
  int64_t batch = 0;
  int64_t q_heads = 0, kv_heads = 0;  // q_heads is a multiple of kv_heads
  int64_t q_rows = 0, kv_rows = 0;
  int64_t head_size = 0, v_head_size = 0;
};

// Where the rows of the heads of an operand are; strides in elements.
template <typename T>
struct HeadRows {
  T* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
  T* At(int64_t batch, int64_t head, int64_t row) const {
    return data + batch * batch_stride + head * head_stride + row * row_stride;
  }
};

// A product of dims as a stride. It overflows only where another dim is zero,
// and then nothing is read.
template <typename... Ints>
int64_t Stride(Ints... dims) {
  return static_cast<int64_t>((static_cast<uint64_t>(dims) * ...));
}

// [batch, head, row, size]
template <typename T>
HeadRows<T> HeadMajor(T* data, int64_t heads, int64_t rows, int64_t size) {
  return {data, Stride(heads, rows, size), Stride(rows, size), size};
}
// [batch, row, width]: the heads are side by side in a row, which may hold
// more than them.
template <typename T>
HeadRows<T> RowMajor(T* data, int64_t rows, int64_t size, int64_t width) {
  return {data, Stride(rows, width), size, width};
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OPS_HEAD_ROWS_H_
