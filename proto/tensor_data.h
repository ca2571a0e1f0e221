// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// From a TensorProto to an ir::Tensor. For .cc files of this folder only: it
// includes onnx.
//
// Small tensors come out as little-endian bytes, large ones as ranges of the
// model file, external ones as checked references. It is the only place that
// compares a tensor's data with its type and dims.
//
//   ASSIGN_OR_RETURN(ir::Tensor tensor, ImportTensor(file, proto, parts));
#ifndef ADDNORM_PROTO_TENSOR_DATA_H_
#define ADDNORM_PROTO_TENSOR_DATA_H_

#include <span>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"
#include "passes/ir/tensor.h"
#include "proto/model_file.h"
#include "proto/wire.h"

namespace addnorm::proto {

// `parts` are the tensor's records, if it has any. Errors begin with its name.
absl::StatusOr<ir::Tensor> ImportTensor(const ModelFile& file,
                                        const onnx::TensorProto& proto,
                                        std::span<const RecordId> parts);

// Only the check of an external tensor's data file; nothing for other tensors.
absl::Status CheckExternal(const ModelFile& file,
                           const onnx::TensorProto& proto);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_TENSOR_DATA_H_
