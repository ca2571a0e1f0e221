// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// How TensorProto holds elements of each type, and how many bytes they are. For
// .cc files of this folder only: it includes onnx.
//
//   ByteSize(ir::DataType::kInt4, 5);     // 3
//   TypedField(ir::DataType::kFloat16);   // int32_data
#ifndef ADDNORM_PROTO_TENSOR_ENCODING_H_
#define ADDNORM_PROTO_TENSOR_ENCODING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"
#include "passes/ir/tensor.h"

namespace addnorm::proto {

// The field that elements are in where they are not in raw_data; 0: unknown
// type.
int TypedField(ir::DataType type);

// Bytes of that many elements as raw_data has them; nullopt for a type of
// unknown width, and for more than memory can hold.
std::optional<uint64_t> ByteSize(ir::DataType type, int64_t count);

// Items of that many elements in the type's own field. Types of 2 and 4 bits
// have as many elements in an item as fit into a byte; 6-bit ones have one.
uint64_t ItemCount(ir::DataType type, int64_t count);

// Product of dims, with an error that says what is wrong with them.
absl::StatusOr<int64_t> ElementCount(const ir::Tensor& tensor);

// The bytes that raw_data would have, from the type's own field; nullopt for
// 6-bit types, which raw_data packs.
std::optional<std::string> DecodeTyped(ir::DataType type,
                                       const onnx::TensorProto& proto);

// Puts "tensor 'name': " before an error.
absl::Status WithTensorName(const absl::Status& status,
                            const std::string& name);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_TENSOR_ENCODING_H_
