// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a model of ONNX text on the runtime, for tests of operators.
//
//   const auto y = RunText(text, {MakeTensor<float>({2}, {1, 2})});
//   CHECK(ValuesOf<float>(y->at(0)) == std::vector<float>{2, 4});
#ifndef ADDNORM_TESTS_SUPPORT_RUN_TEXT_H_
#define ADDNORM_TESTS_SUPPORT_RUN_TEXT_H_

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/executor.h"
#include "tests/support/imported.h"

namespace addnorm::tests {

inline absl::StatusOr<std::vector<runtime::Tensor>> RunText(
    std::string_view text, std::vector<runtime::Tensor> inputs,
    int threads = 1) {
  const auto model = ImportText(text);
  auto executor = runtime::Executor::Create(*model, {.threads = threads});
  if (!executor.ok()) return executor.status();
  return executor.value()->Run(std::move(inputs));
}

template <typename T>
runtime::Tensor MakeTensor(runtime::Dims dims, const std::vector<T>& values) {
  auto tensor =
      runtime::Tensor::Create(runtime::kTypeOf<T>, std::move(dims), nullptr);
  if (!tensor.ok() || tensor->count() != static_cast<int64_t>(values.size()))
    throw std::runtime_error("a tensor of other dims than values");
  std::copy(values.begin(), values.end(), tensor->template mutable_data<T>());
  return *std::move(tensor);
}

template <typename T>
std::vector<T> ValuesOf(const runtime::Tensor& tensor) {
  const auto elements = tensor.elements<T>();
  return {elements.begin(), elements.end()};
}

}  // namespace addnorm::tests

#endif  // ADDNORM_TESTS_SUPPORT_RUN_TEXT_H_
