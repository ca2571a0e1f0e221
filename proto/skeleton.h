// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The model file without its large payloads, parsed by libprotobuf. For .cc
// files of this folder only: it includes onnx.
//
//   onnx::ModelProto skeleton;
//   RETURN_IF_ERROR(ParseSkeleton(file, skeleton));
#ifndef ADDNORM_PROTO_SKELETON_H_
#define ADDNORM_PROTO_SKELETON_H_

#include "absl/status/status.h"
#include "onnx/onnx_pb.h"
#include "proto/model_file.h"

namespace addnorm::proto {

absl::Status ParseSkeleton(const ModelFile& file, onnx::ModelProto& skeleton);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_SKELETON_H_
