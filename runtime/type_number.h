// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The type that an attribute like Cast's `to` names, in words.
//
//   TypeNumberText(8);    // "string"
//   TypeNumberText(300);  // "number 300"
#ifndef ADDNORM_RUNTIME_TYPE_NUMBER_H_
#define ADDNORM_RUNTIME_TYPE_NUMBER_H_

#include <cstdint>
#include <string>

#include "fmt/format.h"
#include "passes/ir/type.h"

namespace addnorm::runtime {

inline std::string TypeNumberText(int64_t number) {
  return number < 0 || number > 255
             ? fmt::format("number {}", number)
             : ir::DataTypeName(static_cast<ir::DataType>(number));
}

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_TYPE_NUMBER_H_
