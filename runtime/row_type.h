// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// From the type of a row, which a model names, to the C++ type that a kernel is
// compiled for. Only for the four types that rows of a norm can have.
//
//   WithFloatType(type, [&]<typename T>() { Square<T>(row); });
#ifndef ADDNORM_RUNTIME_ROW_TYPE_H_
#define ADDNORM_RUNTIME_ROW_TYPE_H_

#include "runtime/element_types.h"

namespace addnorm::runtime {

// f.operator()<T>() with the C++ type of one of the four types that rows can
// have (ir::IsFloat); with float for any other.
template <typename F>
auto WithFloatType(ir::DataType type, F f) {
  switch (type) {
    case ir::DataType::kDouble:
      return f.template operator()<double>();
    case ir::DataType::kFloat16:
      return f.template operator()<Half>();
    case ir::DataType::kBFloat16:
      return f.template operator()<BFloat16>();
    default:
      return f.template operator()<float>();
  }
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_ROW_TYPE_H_
