// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The header of a .npy file: a Python dict with the type, the order and the
// shape of the array behind it. What types mean is npy.cc's.
//
//   ASSIGN_OR_RETURN(NpyHeader header, TakeNpyHeader(file));
//   // `file` now begins with the elements
#ifndef ADDNORM_TOOL_NPY_HEADER_H_
#define ADDNORM_TOOL_NPY_HEADER_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/tensor.h"

namespace addnorm::tool {

struct NpyHeader {
  std::string descr;  // "<f4"
  bool is_fortran_order = false;
  runtime::Dims dims;
};

// kInvalidArgument for what is no header, kUnimplemented for newer formats and
// structured types.
absl::StatusOr<NpyHeader> TakeNpyHeader(std::string_view& file);

// Format 1.0, padded so that what follows is aligned.
std::string NpyHeaderBytes(const NpyHeader& header);

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_NPY_HEADER_H_
