// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// All ops by domain and name. Each group of ops/ has a table of its own; this
// lists the groups.
//
//   const OpRow* row = FindOp("", "Add");
#ifndef ADDNORM_RUNTIME_OP_TABLE_H_
#define ADDNORM_RUNTIME_OP_TABLE_H_

#include <string_view>
#include <vector>

#include "runtime/op.h"

namespace addnorm::runtime {

// nullptr if the runtime has no such op.
const OpRow* FindOp(std::string_view domain, std::string_view op_type);

// Every row, group by group.
std::vector<const OpRow*> AllOps();

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_OP_TABLE_H_
