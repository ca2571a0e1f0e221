// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Puts the nodes of every graph and function after what they read, for ONNX's
// shape inference, which goes through them in the order of the list. For copies
// that are thrown away; files keep their order.
//
//   SortNodes(skeleton);  // messages stay where they are in memory
#ifndef ADDNORM_PROTO_SORT_NODES_H_
#define ADDNORM_PROTO_SORT_NODES_H_

#include "onnx/onnx_pb.h"

namespace addnorm::proto {

// What a subgraph reads, its owner reads. Nodes in a cycle stay as they are.
void SortNodes(onnx::ModelProto& model);

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_SORT_NODES_H_
