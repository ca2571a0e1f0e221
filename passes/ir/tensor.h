// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A constant tensor: its type and dims, and where its elements are.
//
// It is not a buffer: only small tensors (TensorElements::kInline) hold their
// elements; large ones are ranges of the model file or of an external data
// file, which passes never read. A TensorReader (see model.h) fetches them.
#ifndef ADDNORM_PASSES_IR_TENSOR_H_
#define ADDNORM_PASSES_IR_TENSOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "passes/ir/type.h"

namespace addnorm::ir {

// Bytes [offset, offset + length) of the model file.
struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Elements in the tensor itself: little-endian, row-major, as raw_data has them
// (float16 and bfloat16 as their 16 bits; two 4-bit elements a byte).
struct InlineElements {
  std::string bytes;
};

// Elements in the model file, not read. `field` is the TensorProto field that
// holds them (9 raw_data, 4 float_data, …). `ranges` are the bytes of raw_data
// themselves; of other fields, the runs of their occurrences, tags included, as
// protobuf decodes them.
struct FileElements {
  int field = 0;
  std::vector<ByteRange> ranges;
};

// Elements in a file beside the model; the strings are as written there.
struct ExternalElements {
  std::string location;
  std::optional<uint64_t> offset;
  std::optional<uint64_t> length;
};

// Elements that this IR does not interpret, as protobuf encodes them: in memory
// or in the model file. Equal bytes are equal elements. Neither: not even that
// is known of them (a segmented tensor).
struct OpaqueElements {
  std::optional<std::string> encoded = std::nullopt;
  std::vector<ByteRange> ranges = {};
};

struct Tensor {
  std::string name;
  DataType type = DataType::kUndefined;
  std::vector<int64_t> dims;
  std::variant<InlineElements, FileElements, ExternalElements, OpaqueElements>
      elements;

  // Product of dims; nullopt if a dim is negative or the product overflows.
  std::optional<int64_t> element_count() const;
  // nullptr if the elements are not inline.
  const std::string* inline_bytes() const;
  bool is_external() const {
    return std::holds_alternative<ExternalElements>(elements);
  }
};

// A tensor whose elements are zero but for `values`, at the places `indices`.
struct SparseTensor {
  Tensor values, indices;
  std::vector<int64_t> dims;
};

}  // namespace addnorm::ir

#endif  // ADDNORM_PASSES_IR_TENSOR_H_
