// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights that several executors read.
#include <memory>
#include <string>

#include "runtime/weights.h"
#include "tests/support/catch.h"

namespace addnorm::tests {
namespace {

using ir::DataType;
using runtime::Tensor;

Tensor Made(DataType type, runtime::Dims dims, std::string bytes) {
  return *Tensor::FromBytes(type, std::move(dims), std::move(bytes),
                            std::make_shared<runtime::MemoryMeter>());
}

TEST_CASE("equal weights of a pool are one tensor, others are not") {
  runtime::WeightPool pool;
  const std::string bytes("\0\0\x80\x3f\0\0\0\x40", 8);
  const Tensor first = pool.Intern(Made(DataType::kFloat, {2}, bytes));
  const auto is_first = [&](Tensor weight) {
    return pool.Intern(std::move(weight)).data<char>() == first.data<char>();
  };
  CHECK(is_first(Made(DataType::kFloat, {2}, bytes)));
  CHECK_FALSE(is_first(Made(DataType::kFloat, {2, 1}, bytes)));
  CHECK_FALSE(is_first(Made(DataType::kInt32, {2}, bytes)));
  // -0 and 0 are equal numbers, but other bits.
  const Tensor zero =
      pool.Intern(Made(DataType::kFloat, {1}, std::string(4, '\0')));
  const Tensor minus_zero =
      pool.Intern(Made(DataType::kFloat, {1}, std::string("\0\0\0\x80", 4)));
  CHECK(zero.data<char>() != minus_zero.data<char>());
}

}  // namespace
}  // namespace addnorm::tests
