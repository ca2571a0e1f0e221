// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// An IR from ONNX text, for tests of what works on it.
//
//   const auto model = tests::ImportText("<ir_version: 8, …> g (float[2] a) =>
//   …");
#ifndef ADDNORM_TESTS_SUPPORT_IMPORTED_H_
#define ADDNORM_TESTS_SUPPORT_IMPORTED_H_

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "passes/ir/model.h"
#include "proto/import.h"
#include "proto/text.h"

namespace addnorm::tests {

inline std::unique_ptr<ir::Model> ImportText(std::string_view text) {
  auto file = proto::OpenText("text", text);
  if (!file.ok()) throw std::runtime_error(file.status().ToString());
  auto imported = proto::Import(*file);
  if (!imported.ok()) throw std::runtime_error(imported.status().ToString());
  return std::move(imported->model);
}

}  // namespace addnorm::tests

#endif  // ADDNORM_TESTS_SUPPORT_IMPORTED_H_
