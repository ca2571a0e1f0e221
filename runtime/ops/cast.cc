// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/groups.h"

namespace addnorm::runtime {

OpTable CastOps() { return {}; }

}  // namespace addnorm::runtime
