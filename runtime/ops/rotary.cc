// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// RotaryEmbedding, of the default domain and of com.microsoft.
#include "runtime/ops/rotary.h"

#include "passes/ir/status_macros.h"
#include "runtime/grain.h"
#include "runtime/ops/attention_core.h"
#include "runtime/ops/attention_ops.h"

namespace addnorm::runtime {
namespace {

// What the two ops agree on once their operands are found.
struct RotaryCall {
  const Tensor* x = nullptr;
  const Tensor* cos = nullptr;
  const Tensor* sin = nullptr;
  int64_t batch = 0, heads = 0, rows = 0;
  Rotation rotation = {};
  // Row of the caches, for each batch and row.
  std::vector<int64_t> positions = {};
};

// Sets the sizes from x and its number of heads, and checks the caches.
absl::Status SetSizes(const OpContext& op, int64_t heads, RotaryCall& call) {
  const Dims& dims = call.x->dims();
  if (dims.size() == 4) {
    call.batch = dims[0];
    call.heads = dims[1];
    call.rows = dims[2];
    call.rotation.size = dims[3];
  } else if (dims.size() == 3 && heads > 0 && dims[2] % heads == 0) {
    call.batch = dims[0];
    call.heads = heads;
    call.rows = dims[1];
    call.rotation.size = dims[2] / heads;
  } else {
    return OpContext::Invalid("{} cannot be cut into {} heads",
                              Describe(*call.x), heads);
  }
  int64_t rotated = op.attributes().Int("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = call.rotation.size;
  if (rotated < 0 || rotated > call.rotation.size || rotated % 2 != 0) {
    return OpContext::Invalid(
        "{} of the {} elements of a head cannot be turned", rotated,
        call.rotation.size);
  }
  call.rotation.half = rotated / 2;
  call.rotation.interleaved = op.attributes().Int("interleaved", 0) != 0;
  if (call.cos->type() != call.x->type() ||
      call.sin->type() != call.x->type() ||
      call.cos->dims() != call.sin->dims() || call.cos->rank() < 2 ||
      call.cos->dims().back() != call.rotation.half) {
    return OpContext::Invalid("caches {} and {} do not fit {} with {} angles",
                              Describe(*call.cos), Describe(*call.sin),
                              Describe(*call.x), call.rotation.half);
  }
  return absl::OkStatus();
}

absl::Status CheckPositions(const RotaryCall& call) {
  const int64_t rows = call.cos->dims()[0];
  for (const int64_t position : call.positions) {
    if (position < 0 || position >= rows) {
      return OpContext::Invalid(
          "position {} is not in the {} rows of the cache", position, rows);
    }
  }
  return absl::OkStatus();
}

// position_ids [batch, rows], or (contrib) one offset for all.
absl::Status ReadPositions(const OpContext& op, size_t operand, bool offset,
                           RotaryCall& call) {
  const Tensor& ids = op.input(operand);
  if (call.cos->rank() != 2) {
    return OpContext::Invalid("the cache {} is not of rank 2",
                              Describe(*call.cos));
  }
  ASSIGN_OR_RETURN(call.positions, op.Ints(operand));
  if (ids.dims() == Dims{call.batch, call.rows}) return CheckPositions(call);
  if (!offset || ids.count() != 1 || ids.rank() > 1) {
    return OpContext::Invalid("position_ids is {}, expected [{},{}]",
                              Describe(ids), call.batch, call.rows);
  }
  const int64_t first = call.positions[0];
  if (first < 0 || first > call.cos->dims()[0] - call.rows) {
    return OpContext::Invalid("positions from {} on exceed the cache {}", first,
                              Describe(*call.cos));
  }
  call.positions.clear();
  for (int64_t i = 0; i < call.batch * call.rows; ++i)
    call.positions.push_back(first + i % call.rows);
  return absl::OkStatus();
}

// Without position_ids the caches are [batch, rows, half].
absl::Status UseCacheRows(RotaryCall& call) {
  if (call.cos->dims() != Dims{call.batch, call.rows, call.rotation.half}) {
    return OpContext::Invalid("the cache is {}, expected [{},{},{}]",
                              Describe(*call.cos), call.batch, call.rows,
                              call.rotation.half);
  }
  for (int64_t i = 0; i < call.batch * call.rows; ++i)
    call.positions.push_back(i);
  return absl::OkStatus();
}

template <typename T>
absl::Status Rotate(OpContext& op, const RotaryCall& call) {
  const int64_t size = call.rotation.size;
  ASSIGN_OR_RETURN(Tensor * y, op.Output(0, kTypeOf<T>, call.x->dims()));
  if (y->count() == 0) return absl::OkStatus();
  const auto rows_of = [&]<typename U>(U* data) {
    return call.x->rank() == 4
               ? HeadMajor(data, call.heads, call.rows, size)
               : RowMajor(data, call.rows, size, call.heads * size);
  };
  const HeadRows<const T> from = rows_of(call.x->data<T>());
  const HeadRows<T> to = rows_of(y->mutable_data<T>());
  const auto rotate = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % call.rows, head = i / call.rows % call.heads;
      const int64_t batch = i / call.rows / call.heads;
      const int64_t angles =
          call.positions[static_cast<size_t>(batch * call.rows + row)] *
          call.rotation.half;
      RotateRow(call.rotation, from.At(batch, head, row),
                call.cos->data<T>() + angles, call.sin->data<T>() + angles,
                to.At(batch, head, row));
    }
  };
  op.threads().ParallelFor(call.batch * call.heads * call.rows, LineGrain(size),
                           rotate);
  return absl::OkStatus();
}

absl::Status RotateByType(OpContext& op, const RotaryCall& call) {
  return op.ForType<float, Half, BFloat16>(
      *call.x, [&]<typename T>() { return Rotate<T>(op, call); });
}

}  // namespace

absl::Status RotaryEmbedding(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(3));
  RotaryCall call{.x = &op.input(0), .cos = &op.input(1), .sin = &op.input(2)};
  RETURN_IF_ERROR(SetSizes(op, op.attributes().Int("num_heads", 0), call));
  if (call.x->count() == 0) return RotateByType(op, call);
  RETURN_IF_ERROR(op.has_input(3) ? ReadPositions(op, 3, /*offset=*/false, call)
                                  : UseCacheRows(call));
  return RotateByType(op, call);
}

// is_packed_batching changes nothing here: positions are given for each row.
absl::Status ContribRotaryEmbedding(OpContext& op) {
  RETURN_IF_ERROR(op.RequireInputs(4));
  if (const float scale = op.attributes().Float("scale", 1); scale != 1)
    return OpContext::Unsupported("scale {} is not supported", scale);
  RotaryCall call{.x = &op.input(0), .cos = &op.input(2), .sin = &op.input(3)};
  int64_t heads = op.attributes().Int("num_heads", 0);
  // Without a number of heads the caches say how long a head is.
  if (heads == 0 && call.x->rank() == 3 && call.cos->rank() == 2 &&
      call.cos->dims()[1] > 0)
    heads = call.x->dims()[2] / 2 / call.cos->dims()[1];
  RETURN_IF_ERROR(SetSizes(op, heads, call));
  if (call.x->count() == 0) return RotateByType(op, call);
  RETURN_IF_ERROR(ReadPositions(op, 1, /*offset=*/true, call));
  return RotateByType(op, call);
}

}  // namespace addnorm::runtime
