// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// A file with one TensorProto, as ONNX's backend tests have them:
// test_data_set_0/input_0.pb.
//
//   ASSIGN_OR_RETURN(ir::Tensor tensor, ReadTensorFile("input_0.pb"));
//   RETURN_IF_ERROR(WriteTensorFile(tensor, "output_0.pb"));
#ifndef ADDNORM_PROTO_TENSOR_FILE_H_
#define ADDNORM_PROTO_TENSOR_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/ir/tensor.h"

namespace addnorm::proto {

// The elements are inline, however large. Errors name the file:
// kInvalidArgument for what is no tensor or has too few elements,
// kUnimplemented for strings and external data.
absl::StatusOr<ir::Tensor> ReadTensorFile(const std::string& path);

// The elements must be inline; they become raw_data. Errors name the file.
absl::StatusOr<std::string> SerializeTensor(const ir::Tensor& tensor,
                                            const std::string& path);

// An existing file is replaced when the new one is complete, or refused.
absl::Status WriteTensorFile(const ir::Tensor& tensor, const std::string& path,
                             bool replace = true);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_TENSOR_FILE_H_
