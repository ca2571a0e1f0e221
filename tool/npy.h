// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// NumPy's .npy files, format 1.0 to 3.0: one array each, in C or Fortran order,
// of either byte order.
//
// Not for .npz, for pickled objects, for text or for structured types. Types
// that NumPy lacks are stored as their bits: bfloat16 as V2 (read from uint16
// too), float8 as V1 (read from uint8 too), 4-bit and 2-bit integers as one
// int8 or uint8 each.
//
//   ASSIGN_OR_RETURN(Tensor x, TensorFromNpy(bytes, input.type.element));
//   const std::string file = NpyFromTensor(x);
#ifndef ADDNORM_TOOL_NPY_H_
#define ADDNORM_TOOL_NPY_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/tensor.h"

namespace addnorm::tool {

// `declared` decides what bits without a NumPy type are; kUndefined: nothing is
// known. Any other type comes out as the file has it. kInvalidArgument says
// what is wrong with the file, kUnimplemented which type is not supported.
absl::StatusOr<runtime::Tensor> TensorFromNpy(std::string_view file,
                                              ir::DataType declared);

// Format 1.0, C order, little-endian.
std::string NpyFromTensor(const runtime::Tensor& tensor);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_NPY_H_
