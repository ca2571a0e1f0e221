// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensors of a model that the IR does not carry: those of training_info and of
// default values of functions' attributes. Their data files are checked like
// any other's, since the output refers to them too. For .cc files of this
// folder only.
//
//   RETURN_IF_ERROR(CheckUnmodelledTensors(file, model));
#ifndef ADDNORM_PROTO_UNMODELLED_TENSORS_H_
#define ADDNORM_PROTO_UNMODELLED_TENSORS_H_

#include "absl/status/status.h"
#include "onnx/onnx_pb.h"
#include "proto/model_file.h"

namespace addnorm::proto {

absl::Status CheckUnmodelledTensors(const ModelFile& file,
                                    const onnx::ModelProto& model);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_UNMODELLED_TENSORS_H_
