// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Types of values, from TypeProto. For .cc files of this folder only: it
// includes onnx.
//
//   Refine(value->type, ImportType(info.type()));
#ifndef ADDNORM_PROTO_IMPORT_TYPE_H_
#define ADDNORM_PROTO_IMPORT_TYPE_H_

#include "onnx/onnx_pb.h"
#include "passes/ir/type.h"

namespace addnorm::proto {

// Only as text for what is no tensor.
ir::TensorType ImportType(const onnx::TypeProto& proto);

// Takes from `more` what is not known yet; nothing if the two contradict each
// other.
void Refine(ir::TensorType& type, const ir::TensorType& more);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_IMPORT_TYPE_H_
