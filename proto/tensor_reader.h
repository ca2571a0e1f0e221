// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Elements of a model's tensors, read when asked for: from the tensor itself,
// the model file or a data file. Sizes are checked before memory is taken.
//
//   model.reader = MakeTensorReader(file);
//   ASSIGN_OR_RETURN(std::string bytes, model.reader->Read(tensor));
#ifndef ADDNORM_PROTO_TENSOR_READER_H_
#define ADDNORM_PROTO_TENSOR_READER_H_

#include <memory>

#include "passes/ir/model.h"
#include "proto/model_file.h"

namespace addnorm::proto {

// Reads the tensors of one file's model. Not for use by several threads at
// once.
std::unique_ptr<ir::TensorReader> MakeTensorReader(
    std::shared_ptr<const ModelFile> file);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_TENSOR_READER_H_
